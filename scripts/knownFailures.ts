/** @file Specs of TensorFlow.js that are known to fail on the compiler's engines, by reason. */

/** Specs that fail for one reason. */
export interface KnownFailures {
  readonly reason: string;
  /** Where they fail; on both engines if absent. */
  readonly engine?: 'onnx' | 'native';
  /** Names, by file. */
  readonly specs: Readonly<Record<string, readonly string[]>>;
}

/** Failures by reason. `npm run conformance` tells of listed specs that pass, and of others that fail. */
export const KNOWN_FAILURES: readonly KnownFailures[] = [
  {
    reason:
      "NaN wins in choices, as in PyTorch, and `sign(NaN)` is NaN; tfjs's cpu backend passes over NaN ([Numerics](numerics.md))",
    specs: {
      'ops/arg_max': ['argmax ignores NaNs'],
      'ops/arg_min': ['argmin 3D, ignores NaNs', 'argmin ignores NaNs'],
      'ops/max_pool': ['maxPool [x=[3,3,1] f=[2,2] s=1 ignores NaNs'],
      'ops/max_pool_3d': ['maxPool3d x=[1,3,3,3,1] f=[2,2,2] s=1 p=valid, ignores NaNs'],
      'ops/max_pool_with_argmax': ['maxPoolWithArgmax [x=[1,3,3,1] f=[2,2] s=1 ignores NaNs'],
      'ops/sign': ['sign does not propagate NaNs', 'sign basic', 'sign accepts a tensor-like object'],
    },
  },
  {
    reason:
      'the gradient is that of finite differences; the spec expects mirrored elements to have no share in it',
    specs: { 'ops/mirror_pad': ['mirrorPad grad', 'mirrorPad gradient with clones'] },
  },
  {
    reason:
      'the gradient is that of finite differences, where the average counts the cells of the image alone; the spec divides by those of the window',
    specs: { 'ops/avg_pool': ['avgPool gradient x=[3,3,1] f=[3,3] s=1 p=explicit'] },
  },
  {
    reason: 'dilated convolutions have gradients here; the spec expects an error',
    specs: { 'ops/depthwise_conv2d': ['depthwiseConv2d gradients throws error on dilations > 1'] },
  },
  {
    reason: 'a shape that does not fit is refused; the spec passes a wrong one, which the cpu backend takes',
    specs: {
      'ops/avg_pool_3d': ['avgPool3d x=[1,1,1,1,1] f=[1,1,3] s=1 p=valid'],
      'ops/conv2d_transpose': ['conv2dTranspose input=8x8x8,output=4x4x8,f=8,s=1,inDepth=8,p=same vec4'],
    },
  },
  {
    reason:
      'windows of padding alone hold nothing: their maximum is −∞, their average 0/0; the cpu backend returns its input where the result of a window of one cell has the same shape',
    specs: {
      'ops/pool': [
        'pool max x=[2,2,3] f=[1,1] s=2 p=1 fractional outputs default rounding',
        'pool avg x=[2,2,3] f=[1,1] s=2 p=1 fractional outputs default rounding',
      ],
    },
  },
  {
    reason: 'float32 is rounded; the spec compares with float64, to more digits',
    engine: 'onnx',
    specs: { 'ops/exp': ['exp int32'] },
  },
  {
    reason: 'float32 is rounded; the spec compares with float64, to more digits',
    specs: { 'ops/tan': ['tan numbers exceed float32 precision'] },
  },
  {
    reason: 'values are checked when a program runs; the spec expects the call to throw',
    specs: {
      'ops/gather': ['gather throws when index is out of bound'],
    },
  },
  {
    reason: 'a graph break on a value that was computed and not read',
    specs: { 'ops/multinomial': ['multinomial Flip a ten-sided coin and check bounds'] },
  },
];
