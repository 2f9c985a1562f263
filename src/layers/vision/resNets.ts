/** @file ResNet (praxis/layers/resnets.py). */
import type { Tensor } from '../../compiler/index.js';
import { type Config, classOf, deepCopy, deepCopyWith, sub } from '../../hparams/index.js';
import { ConvBNAct } from '../convolution/convBNAct.js';
import type { BaseLayer } from '../core/base.js';
import { GaussianSqrtFanOut } from '../core/weightInit.js';
import { BatchNorm } from '../normalizations.js';
import { BaseStages, type StageBlock } from './networkStages.js';
import { BaseResNetBlock, ResNetBasicBlock, ResNetBlock } from './resNetBlocks.js';

type Applied = BaseLayer & { fprop(x: Tensor): Tensor };

/** He et al. (2015): residual blocks in four stages; by default the 50-layer network. */
export class ResNet extends BaseStages.with({
  convParams: sub(ConvBNAct, () =>
    ConvBNAct.config({
      batchNormTpl: BatchNorm.config({ decay: 0.9 }),
      paramsInit: GaussianSqrtFanOut.config({ scale: 1.4141 }),
    }),
  ).describe('Each convolution.'),
  blockParams: sub(BaseResNetBlock, () => ResNetBlock.config()).describe('Each block.'),
}) {
  protected override get entryflowContraction(): number {
    return classOf(this.hp.blockParams) === ResNetBlock ? 4 : 1;
  }

  protected override createEntry(filterShape: [number, number, number, number]): Applied {
    const { convParams, entryflowConvStride: filterStride } = this.hp;
    return this.createChild('entryflow_conv', deepCopyWith(convParams, { filterShape, filterStride }));
  }

  protected override createBlock(name: string, block: StageBlock): Applied {
    const { convParams, blockParams } = this.hp;
    return this.createChild(name, deepCopyWith(blockParams, { ...block, convParams: deepCopy(convParams) }));
  }
}

const basic = () => ({ channels: [64, 128, 256, 512], blockParams: ResNetBasicBlock.config() });

/** The networks of the paper by their number of layers. */
const DEPTHS = {
  18: () => ({ ...basic(), blocks: [2, 2, 2, 2] }),
  34: () => ({ ...basic(), blocks: [3, 4, 6, 3] }),
  50: () => ({}),
  101: () => ({ blocks: [3, 4, 23, 3] }),
  152: () => ({ blocks: [3, 8, 36, 3] }),
};

/** Config of the network with so many layers (Pax's HParamsResNet18 and the like). */
export const resNet = (depth: keyof typeof DEPTHS): Config<ResNet> => ResNet.config(DEPTHS[depth]());
