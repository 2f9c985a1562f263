/** @file Distillation: a student learns the outputs of a frozen teacher, and activations of its layers. */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { type Decodable, isDecodable } from '../decoding/index.js';
import { didYouMean, sub } from '../hparams/index.js';
import {
  type DecodeStateSpec,
  isWeighed,
  Linear,
  listLayers,
  observeCalls,
  runFrozen,
  type StepArgs,
  selected,
} from '../layers/index.js';
import {
  BaseModel,
  idsBelow,
  type ReadIds,
  type RowSettings,
  type TensorBatch,
  type WeightedScalars,
} from './baseModel.js';
import { meansBy } from './batchMetrics.js';

const dims = (of: string) => z.int().positive().describe(`Last dimension of what ${of} gives.`);

const featurePair = z.object({
  student: z.string().describe("Path of a layer within the student: 'lm/transformer/x_layers_1'."),
  teacher: z
    .string()
    .describe("Path of a layer within the teacher, whose output the student's is to predict."),
  studentDims: dims("the student's layer"),
  teacherDims: dims("the teacher's layer"),
});

/** Outputs of a network: its predictions, logits [..., V], and features [..., D], of positions [...]. */
interface Outputs {
  readonly predictions: unknown;
  readonly logits: Tensor;
  readonly features: readonly Tensor[];
}

/** Results of both. */
interface BothOutputs {
  readonly student: Outputs;
  readonly teacher: Omit<Outputs, 'predictions'>;
}

/**
 * A student of a frozen teacher: α T² KL(softmax(teacher / T) ‖ softmax(student / T)) + (1 − α) the student's own loss (Hinton et
 * al., 2015), and for each pair of features the mean squared error between a linear projection of the student's and the
 * teacher's (FitNets, Romero et al., 2015). Both are models whose predictions have logits, such as LanguageModel; their batches are
 * the same, and the batch's `weights` count. Metrics are the student's, with its own loss as `student_loss`.
 */
export class DistillationModel extends BaseModel.with({
  studentTpl: sub(BaseModel, null).describe('The model that learns; it is the one that decodes.'),
  teacherTpl: sub(BaseModel, null).describe(
    'The teacher, with weights of a run of its own (initFromCheckpoint).',
  ),
  temperature: z.number().positive().default(2).describe('T, which divides the logits of both.'),
  alpha: z
    .number()
    .min(0)
    .max(1)
    .default(0.5)
    .describe("α, the share of the teacher's logits in the loss; 1: labels do not count."),
  features: z.array(featurePair).default([]).describe('Layers whose outputs the student is to predict.'),
  featureWeight: z.number().nonnegative().default(1).describe('Weight of the sum of their errors.'),
}) {
  #student!: BaseModel;
  #teacher!: BaseModel;
  #projections!: readonly Linear[];

  protected override setup(): void {
    const { studentTpl, teacherTpl, features } = this.hp;
    this.#student = this.createChild('student', studentTpl);
    this.#teacher = this.createFrozenChild('teacher', teacherTpl);
    for (const { student, teacher } of features) {
      this.#checkLayer(this.#student, student);
      this.#checkLayer(this.#teacher, teacher);
    }
    this.#projections = this.createChildren(
      'feature_projection',
      features.map(({ studentDims, teacherDims }) =>
        Linear.config({ inputDims: studentDims, outputDims: teacherDims }),
      ),
    );
  }

  override get readIds(): readonly ReadIds[] {
    return idsBelow('studentTpl', this.#student.readIds);
  }

  override get labelIds(): readonly ReadIds[] {
    return idsBelow('studentTpl', this.#student.labelIds);
  }

  override get rowSettings(): RowSettings | null {
    const settings = this.#student.rowSettings;
    return settings && { ...settings, field: `studentTpl.${settings.field}` };
  }

  override computePredictions(batch: TensorBatch): BothOutputs {
    const { features } = this.hp;
    const student = this.#outputsOf(
      this.#student,
      batch,
      features.map((pair) => pair.student),
    );
    const teacher = runFrozen(() => {
      const { logits, features: found } = this.#outputsOf(
        this.#teacher,
        batch,
        features.map((pair) => pair.teacher),
      );
      return { logits, features: found };
    });
    return { student, teacher };
  }

  /** Metrics: the student's, student_loss, distillation_loss (T² KL), agreement (of both on the likeliest class), feature_loss. */
  override computeLoss(
    { student, teacher }: BothOutputs,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    const { alpha, temperature, featureWeight } = this.hp;
    const [own, perExample] = this.#student.computeLoss(student.predictions as never, batch);
    const studentLoss = own.total_loss;
    if (studentLoss === undefined)
      throw this.error(
        `expected a metric total_loss of the student; it has: ${Object.keys(own).join(', ')}.`,
      );
    const weights = this.tensorOf(batch, 'weights');
    const mean = meansBy(weights);
    const counted = tf.expandDims(isWeighed(weights), -1);
    const scaled = (logits: Tensor): Tensor => tf.logSoftmax(tf.div(selected(logits, counted), temperature));
    const [learned, taught] = [scaled(student.logits), scaled(teacher.logits)];
    const divergence = tf.sum(tf.mul(tf.exp(taught), tf.sub(taught, learned)), -1);
    const distillation = mean(tf.mul(divergence, temperature ** 2));
    const agrees = tf.equal(tf.argMax(student.logits, -1), tf.argMax(teacher.logits, -1));
    const errors = this.#projections.map((projection, i) => {
      const difference = tf.sub(projection.fprop(student.features[i]!), teacher.features[i]!);
      return tf.mean(tf.square(selected(difference, counted)), -1) as Tensor;
    });
    const feature = errors.length === 0 ? null : mean(errors.reduce((a, b) => tf.add(a, b)));
    const both = tf.add(tf.mul(distillation[0], alpha), tf.mul(studentLoss[0], 1 - alpha)) as Tensor;
    const total = feature ? (tf.add(both, tf.mul(feature[0], featureWeight)) as Tensor) : both;
    const metrics: WeightedScalars = {
      ...own,
      total_loss: [total, studentLoss[1]],
      student_loss: studentLoss,
      distillation_loss: distillation,
      agreement: mean(tf.cast(agrees, 'float32')),
      ...(feature && { feature_loss: feature }),
    };
    return [metrics, perExample];
  }

  #outputsOf(model: BaseModel, batch: TensorBatch, layers: readonly string[]): Outputs {
    const results = new Map<string, Tensor>();
    const paths = layers.map((layer) => `${model.path}/${layer}`);
    const predictions = observeCalls(
      (path, method, result) => {
        if (method === 'fprop' && paths.includes(path)) results.set(path, result as Tensor);
      },
      () => model.computePredictions(batch),
    );
    const { logits } = predictions as { readonly logits?: Tensor };
    if (logits === undefined)
      throw model.error('its predictions have no logits, which distillation compares.');
    const features = paths.map((path) => {
      const result = results.get(path);
      if (result instanceof tf.Tensor) return result;
      throw this.error(`the layer ${path} gives no tensor by fprop, so that it is no feature.`);
    });
    return { predictions, logits, features };
  }

  /** @throws LayerError for a layer that there is not, or that a layer above repeats */
  #checkLayer(model: BaseModel, path: string): void {
    const layers = listLayers(model);
    const layer = layers.find((each) => each.path === `${model.path}/${path}`);
    if (layer === undefined) {
      const names = layers
        .map((each) => each.path.slice(model.path.length + 1))
        .filter((name) => name !== '');
      throw this.error(`features: the ${model.path} has no layer '${path}'.${didYouMean(path, names)}`);
    }
    if (layer.repeatPrefix.length > 0)
      throw this.error(
        `features: a layer above ${layer.path} repeats it, so that its output is not that of one layer.`,
      );
  }

  /** The student, where it decodes from tokens alone. */
  get #decodes(): Decodable | null {
    const student = this.#student;
    return isDecodable(student) && student.begin === undefined ? student : null;
  }

  /** Number of token ids; undefined where the student does not decode. */
  get vocabSize(): number | undefined {
    return this.#decodes?.vocabSize;
  }

  initialDecodeState(rows: number, seqLen: number): Record<string, DecodeStateSpec> {
    return this.#decodes!.initialDecodeState(rows, seqLen);
  }

  extendStep(ids: Tensor, args: StepArgs): Tensor {
    return this.#decodes!.extendStep(ids, args);
  }
}
