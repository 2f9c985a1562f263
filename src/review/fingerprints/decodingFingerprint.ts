/** @file Fingerprint of decoding: the programs of one token and of a prompt, and a decode with logits that are made up. */
import {
  flattenTree,
  foldIn,
  isSpec,
  prngKey,
  type Tensor,
  type TensorSpec,
  type Tree,
} from '../../compiler/index.js';
import {
  type DecodingModel,
  type Float32Tensor,
  type Int32Tensor,
  isDecodable,
  ofRows,
} from '../../decoding/index.js';
import { build, type Config } from '../../hparams/index.js';
import { BaseInput, type BatchSpecs } from '../../inputs/index.js';
import { runInContext } from '../../layers/index.js';
import type { Decode, SingleTask } from '../../tasks/index.js';
import { digest, programOf, trace } from './digests.js';

/** Tokens of the vocabulary of made-up logits. */
const VOCABULARY = 61;
/** Prompts that are continued, and their longest. */
const PROMPTS = 3;
const MOST_PROMPT = 12;
/** Tokens of a prompt that the program takes at once. */
const PREFILL = 64;

type Tensors = Readonly<Record<string, Tensor>>;

interface Given
  extends Readonly<Record<'params' | 'state', Tensors>>,
    Readonly<Record<'ids' | 'timeStep', Tensor>> {
  readonly prefix?: Tensor;
}

/** Specs of the arrays of a batch with which a model begins a decode; undefined for one that needs none. */
export function promptSpecs(
  { model }: SingleTask,
  batch: () => BatchSpecs,
): Record<string, TensorSpec> | undefined {
  if (!isDecodable(model) || model.promptNames === undefined || model.begin === undefined) return undefined;
  const specs = flattenTree(batch() as Tree<TensorSpec>, isSpec);
  const found = specs.filter(({ path }) => model.promptNames!.includes(path));
  return Object.fromEntries(found.map(({ path, value }) => [path, value]));
}

/** A function of tensors, and its specs. */
type Function = readonly [f: unknown, specs: unknown];

/** The functions of a decode, and the state that they hold. */
interface DecodingFunctions {
  readonly state: Readonly<Record<string, TensorSpec>>;
  /** Of one token, and of a prompt. */
  readonly steps: readonly Function[];
  /** Of what a model begins with; absent for one that begins with nothing. */
  readonly begin?: Function;
}

/**
 * The functions that decode batches of `batchSize` prompts; undefined for a model that does not decode.
 *
 * @param batchPrompt `promptSpecs` of the dataset's batches.
 */
function decodingFunctions(
  task: SingleTask,
  params: Readonly<Record<string, TensorSpec>>,
  batchSize: number,
  batchPrompt: Readonly<Record<string, TensorSpec>> | undefined,
): DecodingFunctions | undefined {
  const { model } = task;
  if (!isDecodable(model)) return undefined;
  const { decoder } = task.hp.decode.hp;
  const rows = decoder.numRows(batchSize);
  const seqlen = Math.max(1, decoder.hp.seqlen);
  const prompt = batchPrompt && ofRows(batchPrompt, rows);
  const state = model.initialDecodeState(rows, seqlen, prompt);
  const step = (given: Given) => {
    const { params, state, ids, timeStep, prefix } = given;
    const decodeState = { ...state };
    const context = { theta: params, doEval: true, decodeState };
    const args = { timeStep, ...(prefix && { prefix }) };
    return { logits: runInContext(context, () => model.extendStep(ids, args)), state: decodeState };
  };
  const steps = [[rows], [rows, Math.min(PREFILL, seqlen)]].map((shape): Function => {
    const specs = {
      ...{ params, state, ids: { shape, dtype: 'int32' }, timeStep: { shape: [], dtype: 'int32' } },
      ...(model.seesWholePrompt && shape.length > 1 && { prefix: { shape: [rows], dtype: 'int32' } }),
    };
    return [step, specs];
  });
  if (prompt === undefined) return { state, steps };
  const begin = (given: { params: Tensors; state: Tensors; prompt: Tensors }) => {
    const decodeState = { ...given.state };
    runInContext({ theta: given.params, doEval: true, decodeState }, () => model.begin!(given.prompt));
    return { state: decodeState };
  };
  return { state, steps, begin: [begin, { params, state, prompt }] };
}

/** Digest of the programs that decode, by the arguments of `decodingFunctions`. @throws LayerError where the model cannot. */
export function decodingProgramsDigest(...args: Parameters<typeof decodingFunctions>): string {
  const functions = decodingFunctions(...args);
  if (functions === undefined) return digest(`${args[0].model.constructor.name} does not decode`);
  const { state, steps, begin } = functions;
  const hashes = steps.map((each) => trace(...each).hash);
  return begin === undefined ? digest(state, hashes) : digest(state, hashes, trace(...begin).hash);
}

/** Requires an input whose ids have text, which decodes write. @throws InputError for one without */
export function checkText({ model }: SingleTask, input: BaseInput): void {
  // Those of their own methods may read data for text.
  const { idsToStrings, vocabularyFor } = BaseInput.prototype;
  const isWithout = input.idsToStrings === idsToStrings && input.vocabularyFor === vocabularyFor;
  if (isWithout && isDecodable(model)) input.idsToStrings({ shape: [1, 0], data: new Int32Array() });
}

/**
 * Traces the programs that decode a dataset's prompts, and has the decoder draw by made-up logits: no weights are allocated.
 *
 * @throws the error with which a decode would end
 */
export async function tryDecoding(
  task: SingleTask,
  params: Readonly<Record<string, TensorSpec>>,
  dataset: Config<BaseInput>,
): Promise<void> {
  const input = build(dataset);
  checkText(task, input);
  const prompt = promptSpecs(task, () => input.paddedBatchSpecs());
  const functions = decodingFunctions(task, params, dataset.batchSize, prompt);
  if (functions === undefined) return;
  for (const each of [...functions.steps, ...(functions.begin ? [functions.begin] : [])]) programOf(...each);
  await drawnDigest(task.hp.decode);
}

/** Logits of each row that depend on its token and the position, and are the same in every version. */
function madeUpLogits(ids: Int32Array, timeStep: number): Float32Array {
  return Float32Array.from({ length: ids.length * VOCABULARY }, (_, i) => {
    const row = Math.floor(i / VOCABULARY);
    const mixed = Math.imul(i % VOCABULARY, 40503) ^ Math.imul(timeStep + 97 * ids[row]! + 7919 * row, 30029);
    return (Math.imul(mixed, 0x9e3779b1) >>> 8) / 2 ** 22;
  });
}

/** A model of such logits, which tells `asked` how it was used. */
function madeUpModel(asked: (...call: readonly unknown[]) => void): DecodingModel {
  const likeliest = (logits: Float32Array): number => logits.indexOf(logits.reduce((a, b) => Math.max(a, b)));
  return {
    extendStep: async (ids, timeStep) => {
      asked('step', [...ids], timeStep);
      return madeUpLogits(ids, timeStep);
    },
    extendGreedily: async (ids, timeStep, count) => {
      asked('greedily', [...ids], timeStep, count);
      const drawn = new Int32Array(count * ids.length);
      let current = ids;
      for (let i = 0; i < count; i++) {
        const logits = madeUpLogits(current, timeStep + i);
        current = current.map((_, row) =>
          likeliest(logits.subarray(row * VOCABULARY, (row + 1) * VOCABULARY)),
        );
        drawn.set(current, i * ids.length);
      }
      return { ids: drawn, logprobs: Float32Array.from(drawn, (id) => -1 / (1 + id)) };
    },
    extendRows: async (ids, positions) => {
      asked('rows', [...ids], [...positions]);
      const rows = Array.from(ids, (_, row) => {
        const own = madeUpLogits(ids, positions[row]!);
        return [...own.subarray(row * VOCABULARY, (row + 1) * VOCABULARY)];
      });
      return Float32Array.from(rows.flat());
    },
    reorder: (origins) => asked('reorder', [...Array.from(origins)]),
    prefill: async (ids, count) => asked('prefill', [...ids], count),
  };
}

/** Digest of the decoder's draws, and of its calls to the model. @throws ConfigError as decoding does. */
export async function drawnDigest({ hp: { decoder, randomSeed, prefixLength } }: Decode): Promise<string> {
  const width = Math.max(1, Math.min(MOST_PROMPT, decoder.hp.seqlen));
  const key = prngKey(randomSeed);
  const lengths: Int32Tensor = {
    shape: [PROMPTS],
    dtype: 'int32',
    data: Int32Array.from({ length: PROMPTS }, (_, row) => Math.max(1, width - row)),
  };
  const data = Int32Array.from({ length: PROMPTS * width }, (_, i) => (7 * i) % VOCABULARY);
  const calls: unknown[] = [];
  const { outputIds, logprobs, ...others } = await decoder.decode({
    prefixIds: { shape: [PROMPTS, width], dtype: 'int32', data },
    prefixLengths: lengths,
    key: foldIn(key, 1),
    ...madeUpModel((...call) => calls.push(call)),
  });
  const told = Object.values(others) as (Int32Tensor | Float32Tensor)[];
  const tensors = [outputIds, logprobs, ...told];
  return digest(decoder.drawPrefixLengths(lengths, key), prefixLength, calls, tensors);
}
