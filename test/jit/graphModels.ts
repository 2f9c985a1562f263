/** @file Graph models of published architectures, all their layers, at small sizes. */
import { GraphFile } from './graphModelFiles.js';

/** MobileNet v1: depth-separable blocks. Width by `alpha`. */
function mobileNetV1(
  file: GraphFile,
  x: string,
  alpha: number,
): { readonly x: string; readonly depth: number } {
  const blocks = [
    [64, 1],
    [128, 2],
    [128, 1],
    [256, 2],
    [256, 1],
    [512, 2],
  ] as [number, number][];
  blocks.push(...Array.from({ length: 5 }, (): [number, number] => [512, 1]), [1024, 2], [1024, 1]);
  let depth = 32 * alpha;
  let y = file.conv(x, [3, 3, 3, depth], 2);
  for (const [width, strides] of blocks) {
    y = file.depthwise(y, 3, depth, strides);
    y = file.conv(y, [1, 1, depth, width * alpha]);
    depth = width * alpha;
  }
  return { x: y, depth };
}

/** The classifier of tfjs-models: the batch's size is computed from shapes. */
function mobileNetV1Classifier(): [GraphFile, string[]] {
  const file = new GraphFile();
  const x = file.input('input', [-1, 32, 32, 3]);
  const { x: features, depth } = mobileNetV1(file, x, 0.25);
  const pooled = file.mean(features, [1, 2], true);
  const logits = file.conv(pooled, [1, 1, depth, 10], 1, '');
  const flat = file.reshape(logits, file.pack(file.size(logits, 0), file.size(logits, 3)));
  return [file, [file.node('Softmax', [flat])]];
}

/** MobileNet v2: inverted residuals, padded before strides, as Keras exports it. */
function mobileNetV2(): [GraphFile, string[]] {
  const file = new GraphFile();
  const x = file.input('input', [-1, 32, 32, 3]);
  const pad = (y: string): string =>
    file.node('Pad', [
      y,
      file.table([
        [0, 0],
        [0, 1],
        [0, 1],
        [0, 0],
      ]),
    ]);
  let depth = 8;
  let y = file.separateConv(pad(x), [3, 3, 3, depth], 2);
  for (const [expansion, width, repeats, strides] of [
    [1, 8, 1, 1],
    [6, 8, 2, 2],
    [6, 8, 3, 2],
    [6, 16, 4, 2],
    [6, 24, 3, 1],
    [6, 40, 3, 2],
    [6, 80, 1, 1],
  ] as const) {
    for (let i = 0; i < repeats; i++) {
      const wide = depth * expansion;
      const inner = expansion === 1 ? y : file.conv(y, [1, 1, depth, wide]);
      const filtered = file.depthwise(
        i === 0 && strides === 2 ? pad(inner) : inner,
        3,
        wide,
        i === 0 ? strides : 1,
      );
      const narrow = file.conv(filtered, [1, 1, wide, width], 1, '');
      y = i > 0 ? file.node('AddV2', [y, narrow]) : narrow;
      depth = width;
    }
  }
  y = file.mean(file.conv(y, [1, 1, depth, 128]), [1, 2]);
  const classes = file.node('Softmax', [file.dense(y, 128, 10)]);
  const best = file.node('ArgMax', [classes, file.int1(-1)], { output_type: { type: 'DT_INT32' } });
  return [file, [classes, best]];
}

/** PoseNet: images resized and scaled, MobileNet v1, four heads. */
function poseNet(): [GraphFile, string[]] {
  const file = new GraphFile();
  const image = file.input('image', [1, 40, 24, 3]);
  const resized = file.node('ResizeBilinear', [image, file.int(33, 33)], {
    align_corners: { b: true },
    half_pixel_centers: { b: false },
  });
  const scaled = file.node('Sub', [file.node('RealDiv', [resized, file.scalar(127.5)]), file.scalar(1)]);
  const { x, depth } = mobileNetV1(file, scaled, 0.25);
  const heads = [17, 34, 32, 32].map((width) => file.conv(x, [1, 1, depth, width], 1, ''));
  return [file, [file.node('Sigmoid', [heads[0]!]), ...heads.slice(1)]];
}

/** BlazeFace: blocks of 5 × 5 depthwise filters whose channels are padded; boxes and scores of two sizes, joined. */
function blazeFace(): [GraphFile, string[]] {
  const file = new GraphFile();
  let y = file.conv(file.input('input', [1, 64, 64, 3]), [5, 5, 3, 24], 2, 'Relu');
  let depth = 24;
  const block = (width: number, strides: number, project?: number): void => {
    const first = file.conv(
      file.depthwise(y, 5, depth, strides, ''),
      [1, 1, depth, project ?? width],
      1,
      project ? 'Relu' : '',
    );
    const main = project
      ? file.conv(file.depthwise(first, 5, project, 1, ''), [1, 1, project, width], 1, '')
      : first;
    const pooled = strides === 2 ? file.maxPool(y) : y;
    const padding = file.table([
      [0, 0],
      [0, 0],
      [0, 0],
      [0, width - depth],
    ]);
    const skip = width === depth ? pooled : file.node('PadV2', [pooled, padding, file.scalar(0)]);
    y = file.node('Relu', [file.node('AddV2', [main, skip])]);
    depth = width;
  };
  for (const [width, strides] of [
    [24, 1],
    [28, 1],
    [32, 2],
    [36, 1],
    [42, 1],
  ] as const)
    block(width, strides);
  block(96, 2, 24);
  for (let i = 0; i < 4; i++) block(96, 1, 24);
  const coarse = (): string[] =>
    [2, 32].map((width) => file.reshape(file.conv(y, [1, 1, depth, width], 1, ''), file.int(1, -1, 16)));
  const first = coarse();
  block(96, 2, 24);
  for (let i = 0; i < 4; i++) block(96, 1, 24);
  const second = coarse();
  const joined = first.map((x, i) => file.node('ConcatV2', [x, second[i]!, file.int1(1)], { N: { i: '2' } }));
  return [file, [file.node('Sigmoid', [joined[0]!]), joined[1]!]];
}

/** A BERT encoder: rows and positions are read from the shape of the ids, the mask from the ids. */
function encoder(): [GraphFile, string[]] {
  const [file, width, heads] = [new GraphFile(), 16, 2];
  const INT = { type: 'DT_INT32' };
  const ids = file.input('input_ids', [-1, -1], INT);
  const [rows, length] = [file.size(ids, 0), file.size(ids, 1)];
  const gather = (table: string, indices: string): string =>
    file.node('GatherV2', [table, indices, file.int1(0)], { Tindices: INT, batch_dims: { i: '0' } });
  const range = file.node('Range', [file.int1(0), length, file.int1(1)], { Tidx: INT });
  const norm = (x: string): string => {
    const mean = file.mean(x, [2], true);
    const squares = file.node('SquaredDifference', [x, mean]);
    const deviation = file.node('Rsqrt', [
      file.node('AddV2', [file.mean(squares, [2], true), file.scalar(1e-6)]),
    ]);
    const scale = file.node('Mul', [deviation, file.weight([width], 0.5, 1.5)]);
    const shift = file.node('Sub', [file.weight([width]), file.node('Mul', [mean, scale])]);
    return file.node('AddV2', [file.node('Mul', [x, scale]), shift]);
  };
  const positions = file.node('ExpandDims', [gather(file.weight([12, width]), range), file.int1(0)]);
  let x = norm(file.node('AddV2', [gather(file.weight([50, width], -1, 1), ids), positions]));
  const isPadding = file.node('Cast', [file.node('Equal', [ids, file.int1(0)], { T: INT })], {
    SrcT: { type: 'DT_BOOL' },
    DstT: { type: 'DT_FLOAT' },
  });
  const around = file.pack(rows, file.int1(1), file.int1(1), length);
  const mask = file.node('Mul', [file.reshape(isPadding, around), file.scalar(-10000)]);
  const dense = (y: string, from: number, to: number): string => {
    const flat = file.reshape(y, file.int(-1, from));
    return file.reshape(file.dense(flat, from, to), file.pack(rows, length, file.int1(to)));
  };
  for (let layer = 0; layer < 2; layer++) {
    const [query, key, value] = [0, 1, 2].map(() => {
      const split = file.reshape(
        dense(x, width, width),
        file.pack(rows, length, file.int1(heads), file.int1(width / heads)),
      );
      return file.transpose(split, 0, 2, 1, 3);
    }) as [string, string, string];
    const scores = file.node('Mul', [
      file.product(query, key, true),
      file.scalar(1 / Math.sqrt(width / heads)),
    ]);
    const weights = file.node('Softmax', [file.node('AddV2', [scores, mask])]);
    const mixed = file.transpose(file.product(weights, value), 0, 2, 1, 3);
    const attended = dense(file.reshape(mixed, file.pack(rows, length, file.int1(width))), width, width);
    x = norm(file.node('AddV2', [x, attended]));
    const hidden = dense(x, width, 4 * width);
    const erf = file.node('Erf', [file.node('Mul', [hidden, file.scalar(Math.SQRT1_2)])]);
    const gelu = file.node('Mul', [
      file.node('Mul', [hidden, file.scalar(0.5)]),
      file.node('AddV2', [erf, file.scalar(1)]),
    ]);
    x = norm(file.node('AddV2', [x, dense(gelu, 4 * width, width)]));
  }
  const first = file.node('StridedSlice', [x, file.int(0, 0), file.int(0, 1), file.int(1, 1)], {
    Index: INT,
    begin_mask: { i: '1' },
    end_mask: { i: '1' },
    ellipsis_mask: { i: '0' },
    new_axis_mask: { i: '0' },
    shrink_axis_mask: { i: '2' },
  });
  return [file, [x, file.node('Tanh', [file.dense(first, width, width)])]];
}

/** Files and the names of their outputs. */
export const architectures: Readonly<Record<string, () => [GraphFile, string[]]>> = {
  'MobileNet v1': mobileNetV1Classifier,
  'MobileNet v2': mobileNetV2,
  PoseNet: poseNet,
  BlazeFace: blazeFace,
  encoder,
};
