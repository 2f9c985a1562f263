/**
 * @file Files about the state that a run begins with: post_init_model_params.txt and train_state_provenance.txt (the names
 * are paxml's).
 */
import { join } from 'node:path';
import { Configurable, isConfig, showLong } from '../hparams/index.js';
import { type BaseLayer, listLayers, type Variable } from '../layers/index.js';
import { EMA } from '../learners/index.js';
import { type JobOptions, writeJobFile } from '../runs/index.js';
import type { SingleTask } from '../tasks/index.js';
import type { InitFromCheckpoint } from './initFromCheckpoint.js';
import { verbatim } from './reporter.js';
import type { Restored } from './startingCheckpoint.js';
import type { FlatTrainState } from './taskState.js';

/** Fields that a layer takes from those above where it has none of its own. */
const inherited = ['dtype', 'fpropDtype', 'paramsInit', 'skipLpRegularization'] as const;

/** A value of a built layer: an object that was built has its class and its fields. */
function textOf(value: unknown): string {
  if (!(value instanceof Configurable)) return showLong(value ?? null);
  const fields = Object.entries(value.hp).map(([name, held]) => `${name}: ${textOf(held)}`);
  return `${value.constructor.name}${fields.length === 0 ? '' : ` { ${fields.join(', ')} }`}`;
}

const holdsConfigs = (value: unknown): boolean =>
  isConfig(value) || (Array.isArray(value) && value.some((each) => isConfig(each)));

/** Lines of a layer: its class, and its fields with those of layers above in place of unset ones; templates are its children. */
function layerLines(layer: BaseLayer): string[] {
  const path = layer.path === '' ? 'model' : layer.path;
  const own = Object.entries(layer.hp).filter(([, value]) => !holdsConfigs(value));
  const fields = {
    ...Object.fromEntries(own),
    ...Object.fromEntries(inherited.map((name) => [name, layer[name]])),
  };
  return [
    `${path} : class ${layer.constructor.name}`,
    ...Object.entries(fields).map(([name, value]) => `${path}.${name} : ${textOf(value)}`),
  ];
}

const variableLine = ({ path, dtype, storage, shape, init, collections }: Variable): string =>
  `${path} : ${storage ?? dtype} [${shape.join(', ')}] ${[textOf(init), ...collections].join(' ')}`;

/** Text of post_init_model_params.txt: the layers of the model as they were built, then its variables. */
export function postInitText({ model, variables }: Pick<SingleTask, 'model' | 'variables'>): string {
  return `${[...listLayers(model).flatMap(layerLines), '', ...variables.map(variableLine)].join('\n')}\n`;
}

/** Writes post_init_model_params.txt, in a job that decodes beside its outputs. @throws JobError if it can't be written */
export function writePostInit(
  { jobLogDir, mode }: Pick<JobOptions, 'jobLogDir' | 'mode'>,
  task: SingleTask,
): void {
  const folder = mode.startsWith('decode') ? join(jobLogDir, 'decoder_out') : jobLogDir;
  writeJobFile(join(folder, 'post_init_model_params.txt'), postInitText(task));
}

/** Value of a part that no checkpoint gave. */
const RANDOM_INIT = 'random_init';

/** Text of train_state_provenance.txt: the source of the step, of each variable, and of each slot of the optimizer. */
export function provenanceText(
  { layout, slotLayouts }: Pick<FlatTrainState, 'layout' | 'slotLayouts'>,
  restored: Pick<Restored, 'path' | 'unfrozen' | 'average'> | undefined,
  given: Pick<InitFromCheckpoint, 'sourceOf'> | undefined,
): string {
  const begun = restored?.path ?? RANDOM_INIT;
  const unfrozen = new Set(restored?.unfrozen);
  const slots = Object.entries(slotLayouts).flatMap(([slot, { entries }]) =>
    entries.map(({ name }) => {
      const isNew = unfrozen.has(name) || (slot === EMA && restored?.average === 'begins');
      return `opt_states/${slot}/${name} : ${isNew ? RANDOM_INIT : begun}`;
    }),
  );
  const variables = layout.entries.map(({ name }) => `mdl_vars/${name} : ${given?.sourceOf(name) ?? begun}`);
  return `${[`step : ${begun}`, ...variables, ...slots].join('\n')}\n`;
}

/** Texts of a run that begins, by Pax's tags: variables with their shapes, and the sources of variables and slots. */
export function stateTexts(
  { variables }: Pick<SingleTask, 'variables'>,
  ...of: Parameters<typeof provenanceText>
): Record<string, string> {
  const lines = provenanceText(...of).split('\n');
  const below = (prefix: string) =>
    verbatim(
      lines.flatMap((line) => (line.startsWith(prefix) ? [line.slice(prefix.length)] : [])).join('\n'),
    );
  return {
    Model: verbatim(variables.map(variableLine).join('\n')),
    'Model vars provenance': below('mdl_vars/'),
    'Opt states provenance': below('opt_states/'),
  };
}

/** Writes train_state_provenance.txt of a run that begins, from initial values or another run. @throws JobError */
export function writeProvenance(
  { jobLogDir }: Pick<JobOptions, 'jobLogDir'>,
  ...of: Parameters<typeof provenanceText>
): void {
  writeJobFile(join(jobLogDir, 'train_state_provenance.txt'), provenanceText(...of));
}
