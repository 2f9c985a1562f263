/** @file Peak memory of training as analyses tell it, beside what a process takes. */
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { analyze } from '../../src/analysis/analyze.js';
import { startCommand } from '../command.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { oneIn, title } from '../faults/campaign.js';
import { longTest } from '../longTest.js';
import { scratchProject } from '../tools/scratch.js';
import { configured, Gpt } from './models.js';

/** A family of models that no experiment of this repository is of. */
const others = `
import { AdamW, Experiment, gpt2Lm, LanguageModel, Learner, SingleTask, SyntheticLmInput, Train } from 'luthier';
import { StackFrnn } from 'luthier/layers';

abstract class Text extends Experiment {
  protected abstract edit(stack: any): void;

  override task(): any {
    const lmTpl: any = gpt2Lm({ vocabSize: 512, modelDims: 256, numLayers: 2, numHeads: 4, maxSeqLength: 64 });
    this.edit(lmTpl.stackedTransformerTpl);
    const learner = Learner.config({ optimizer: AdamW.config({ learningRate: 1e-3 }) });
    return SingleTask.config({ model: LanguageModel.config({ lmTpl }), train: Train.config({ learner }) });
  }

  override datasets(): any {
    return [SyntheticLmInput.config({ isTraining: true, vocabSize: 512, batchSize: 96, seqLen: 64 })];
  }
}

/** LSTMs in the attention's place. */
export class Recurrent extends Text {
  protected override edit(stack: any): void {
    stack.transformerLayerParamsTpl.mixerTpl = StackFrnn.config({ numLayers: 2 });
  }
}
`;
const repository = fileURLToPath(new URL('../..', import.meta.url));
const shape = { layers: 6, heads: 6, width: 384, context: 256, batch: 8, vocabulary: 256, steps: 1 };

/** Each by its experiment, large enough that what a process takes for anything else is less than the bound. */
const families: readonly (readonly [family: string, args: readonly string[], isOther?: true])[] = [
  ['language model', [JSON.stringify(shape)]],
  ['T5', ['t5.MadeText', '--set', 'batchSize=256']],
  ['convolutions', ['shapes.Classify', '--set', 'batchSize=512']],
  ['encoder and decoder', ['sequences.Translate', '--set', 'batchSize=512']],
  ['image transformer', ['shapes.Masked', '--set', 'batchSize=1024']],
  ['recurrent', ['large.Recurrent'], true],
  ['masked language model', ['bert.Letters', '--set', 'batchSize=256']],
];

for (const [family, args, isOther] of oneIn(4, families))
  longTest(
    title(`a training step takes what its plan says: ${family}`),
    async () => {
      const folder = isOther ? scratchProject({ 'experiments/large.ts': others }) : repository;
      const ratios: number[] = [];
      // A system short of memory takes pages back before they are counted: another process shows them.
      do {
        const { finished } = startCommand(args, folder, 'bench/luthierMemory.ts');
        const { code, stdout, stderr } = await finished;
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        ratios.push(JSON.parse(stdout).ratio);
      } while (ratios.at(-1)! > 1.05 && ratios.length < 3);
      expect(ratios.at(-1)).toBeGreaterThan(0.95);
      expect(ratios.at(-1)).toBeLessThan(1.05);
    },
    hasCompiler,
  );

test('more heads take next to no more: weights of attention are not stored', () => {
  const [few, many] = [1, 4].map(
    (heads) => analyze(configured(Gpt, { heads, dims: 64, time: 256 })).memory.total,
  );
  expect(many! / few!).toBeLessThan(1.03);
});
