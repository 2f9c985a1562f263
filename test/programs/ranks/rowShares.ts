/** @file A small model whose batches ranks share: rows that weigh unequally, of which one is padding. */
import { type HostTensor, mapTree } from '../../../src/compiler/index.js';
import type { Config } from '../../../src/hparams/index.js';
import type { Batch, InputSource } from '../../../src/inputs/index.js';
import { gpt2Lm, LanguageModel } from '../../../src/models/index.js';
import type { SingleTask } from '../../../src/tasks/index.js';
import { tokens } from '../tinyTraining.js';

const ROWS = 8;

/** A rank's share of the first rows of each batch, which weigh unequally; one of them is padding. */
export function shareOf(rank: number, count: number): InputSource {
  const input = tokens();
  const cut = (batch: Batch): Batch => {
    const { weights } = batch as unknown as { weights: HostTensor };
    weights.data.forEach((_, i) => {
      const row = Math.floor((i * weights.shape[0]!) / weights.data.length);
      weights.data[i] = row === 3 ? 0 : 1 + row / 4;
    });
    const isTensor = (value: unknown): value is HostTensor => ArrayBuffer.isView((value as HostTensor).data);
    return mapTree<HostTensor, HostTensor>(batch as never, isTensor, ({ shape, dtype, data }) => {
      const size = (data.length / shape[0]!) * (ROWS / count);
      return {
        shape: [ROWS / count, ...shape.slice(1)],
        dtype,
        data: data.slice(rank * size, (rank + 1) * size) as Float32Array,
      };
    }) as unknown as Batch;
  };
  for (const name of ['getNext', 'peek'] as const) {
    const next = input[name].bind(input) as () => Promise<Batch>;
    input[name] = async () => cut(await next());
  }
  return input;
}

/** Sub-batches of two rows, with dropout and noise on weights, whose gradients are clipped together. */
export const divided = (config: Config<SingleTask>) => {
  const lmTpl = gpt2Lm({
    ...{ vocabSize: 64, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: 16 },
    dropoutProb: 0.1,
  });
  config.model = LanguageModel.config({ lmTpl, fpropDtype: config.model.fpropDtype });
  Object.assign(config.vn, { vnScale: 0.01, vnRegex: '.*', vnStartStep: 1 });
  config.train.numSubBatches = 4;
  config.train.learner.optimizer.clipGradientNormToValue = 0.1;
};
