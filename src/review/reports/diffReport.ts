/**
 * @file Diff reports: the JSON form of `luthier diff`, as schemas and the types that follow from them. A report may come
 * from a stranger's code, so every text and list has a largest size, and nothing may stand in it that is not listed here.
 */
import { z } from 'zod';
import { PRECISION_NAMES } from '../../compiler/index.js';
import { fingerprinted } from '../fingerprints/fingerprintedParts.js';
import { thresholdSchema } from '../settings.js';

const text = z.string().max(100_000);
const count = z.int().nonnegative();
const part = z.enum(fingerprinted);
const precision = z.enum(PRECISION_NAMES);
const listOf = <S extends z.ZodType>(item: S) => z.array(item).max(100_000).readonly();

/** For values in one version, the other, or both. */
const isThere = (value: { readonly old?: unknown; readonly new?: unknown }): boolean =>
  value.old !== undefined || value.new !== undefined;
const oneOfBoth = 'expected old, new or both';

const sideFields = z.strictObject({
  /** The value as text. */
  text,
  /** Whether it is the class's default. */
  isDefault: z.literal(true).exactOptional(),
  /** `file:line` relative to the project, or the flag, that set or declares it. */
  place: text.exactOptional(),
  /** The class that declares the default. */
  declaredBy: text.exactOptional(),
});
const side = sideFields.readonly();
const constantSide = sideFields.extend({ setBy: text }).readonly();
/** A value in one of the two versions. */
export type Side = z.infer<typeof side>;

const constantChange = z
  .strictObject({ name: text, old: constantSide.exactOptional(), new: constantSide.exactOptional() })
  .refine(isThere, oneOfBoth)
  .readonly();
/** Change of a constant of the experiment. A side is absent if it has no such constant, or no value. */
export type ConstantChange = z.infer<typeof constantChange>;

const fieldChange = z
  .strictObject({
    /**
     * `changed` has both sides, `added` the new and `removed` the old one; `moved` says in `new.text` where it is now;
     * `class` is another class, and `kind` a partial, say, where a config was.
     */
    what: z.enum(['changed', 'added', 'removed', 'moved', 'class', 'kind']),
    /** Path in the old version; in the new one for additions. `[0…11]` are items with the same change. */
    path: text,
    /** Its path in the new version, if another. */
    newPath: text.exactOptional(),
    old: side.exactOptional(),
    new: side.exactOptional(),
    /** Whether runs can't go on because of it. */
    forcesNewRun: z.literal(true).exactOptional(),
    /** Number of merged paths; absent for one. */
    count: count.exactOptional(),
  })
  .refine(isThere, oneOfBoth)
  .readonly();
/** Change of a field, an item of a list, or a whole sub-config. */
export type FieldChange = z.infer<typeof fieldChange>;

const figure = z
  .strictObject({
    old: z.number().nonnegative().exactOptional(),
    new: z.number().nonnegative().exactOptional(),
  })
  .readonly();
/** A figure before and after; absent where unknown. */
export type Figure = z.infer<typeof figure>;

const variableGroup = z
  .strictObject({
    /** With `*` for the numbers: `lm/transformer/x_layers_*\/w`. */
    name: text,
    count,
    /** Shape and type: `[64, 128] float32`. Absent in the version that lacks it. */
    old: text.exactOptional(),
    new: text.exactOptional(),
  })
  .refine(isThere, oneOfBoth)
  .readonly();
/** Variables that differ only by numbers in their names. */
export type VariableGroup = z.infer<typeof variableGroup>;

/**
 * How runs of the old version go on in the new one: with the same bits; with something changed; not at all; or what could not be
 * compared.
 */
const resumptions = ['same', 'changed', 'never', 'unknown'] as const;
const checkpointEffect = z
  .strictObject({
    goesOn: z.enum(resumptions),
    /** What is not as it was, of `changed`, or not known, of `unknown`; the text is the job's own sentence, or a reason. */
    changes: listOf(z.strictObject({ what: text, text: text.exactOptional() }).readonly()),
    /** The error with which a job ends, of `never`. */
    error: text.exactOptional(),
    /** The fields that force it to: `task.train.learner.optimizer: AdamW → Lion`. */
    forcedBy: listOf(text),
    /** How many of the variables a new run can still begin with, by `initFromCheckpoint`, and those that it can't. */
    loads: z
      .strictObject({ count, keeps: listOf(text) })
      .readonly()
      .exactOptional(),
    appeared: listOf(variableGroup),
    vanished: listOf(variableGroup),
    reshaped: listOf(variableGroup),
  })
  .readonly();
/** How the checkpoints of the old version fit the new one, asked of the code that resumes. */
export type CheckpointEffect = z.infer<typeof checkpointEffect>;

const ruleChange = z
  .strictObject({
    /** `trained`, `decayed`, `initialized by Gaussian {"scale":0.02}` */
    rule: text,
    /** How many variables of the model it reaches. */
    old: count,
    new: count,
    /** The variables of both versions that one of them alone reaches, with `*` for numbers. */
    gained: listOf(text),
    lost: listOf(text),
  })
  .readonly();
/** A rule for variables, such as a pattern of those that are trained, that reaches others than before. */
export type RuleChange = z.infer<typeof ruleChange>;

const effects = z
  .strictObject({
    parameters: figure,
    /** Unit of batches, a plural: `tokens`, `rows`. Absent if no version could be analysed. */
    unit: text.exactOptional(),
    /** FLOPs of the forward pass for a token, or another unit. */
    flopsPerToken: figure,
    tokensPerStep: figure,
    /** Tokens, or other units, of the whole training; absent if the task does not set its length. */
    trainingTokens: figure,
    /** FLOPs of the whole training, forward and backward. */
    trainingFlops: figure,
    /** In which most of the products multiply. */
    precision: z.strictObject({ old: precision.exactOptional(), new: precision.exactOptional() }).readonly(),
    /** Hours of one device for the whole training; absent without a device file, or where it lacks the precision. */
    deviceHours: figure,
    /** Of those hours, in the device file's currency. */
    price: figure,
    /** The most bytes that a training step holds at once, on each device of its mesh. */
    peakMemory: figure,
    /** Rules that reach other variables than before; absent for none. */
    rules: listOf(ruleChange).exactOptional(),
  })
  .readonly();
/** Effects on the model and its training. */
export type Effects = z.infer<typeof effects>;

const uncompared = z
  .strictObject({ part: z.enum([...fingerprinted, 'experiment']), reason: text })
  .readonly();
/** A part of an experiment's computations or data, or all of it, that was not compared, or not completely. */
export type Uncompared = z.infer<typeof uncompared>;

const computed = z
  .strictObject({
    /** The parts that are not as they were. */
    differs: listOf(part),
    uncompared: listOf(uncompared),
    /** Where the parts differ: an operation of a layer, or a row before and after. Absent for nowhere in particular. */
    places: listOf(z.strictObject({ part, text }).readonly()).exactOptional(),
    /** The changed files that the experiment loads. */
    files: listOf(text),
    /** The changed files of data that it read. */
    data: listOf(text).exactOptional(),
    /** Whether both codes were given the configs of now, which are not those of before. */
    isByNew: z.literal(true).exactOptional(),
  })
  .readonly();
/** Comparison of the programs and the data of an experiment with equal configs, its own or those that it has now. */
export type Computed = z.infer<typeof computed>;

/**
 * `broken` had configs that could be made, and a model that could be traced, before, or was added without; `mended` has
 * them now; `failing` fails in both versions. `moved`: nothing changed but the experiment's own name. `renamed`: nothing
 * changed but names of classes, fields and constants, and aliases say which. `redeclared`: classes have fields more or
 * less, which nobody sets; all values are as they were. `uncompared`: nothing is known to have changed, and not all could
 * be compared.
 */
export const statuses = [
  'broken',
  'removed',
  'added',
  'changed',
  'mended',
  'moved',
  'renamed',
  'redeclared',
  'uncompared',
  'failing',
  'unchanged',
] as const;
export type Status = (typeof statuses)[number];

const learningRates = z
  .strictObject({
    /** Of the whole training. */
    steps: z.int().positive(),
    /** From the first step to the last, equally far apart. */
    rates: z.array(z.number().min(-1e30).max(1e30)).min(2).max(100).readonly(),
  })
  .readonly();
const learningRateChange = z.strictObject({ old: learningRates, new: learningRates }).readonly();
/** Learning rates over the training, in both versions. */
export type LearningRateChange = z.infer<typeof learningRateChange>;

const failure = z.strictObject({ message: text, place: text.exactOptional() }).readonly();

const former = z
  .strictObject({
    name: text,
    /**
     * Evidence that it is the same experiment: `class`, one class has both names; `file`, git's detection of renamed
     * files, and the class's name; `configs`, the configs and constants.
     */
    evidence: listOf(z.enum(['class', 'file', 'configs'])),
    /** From the project's folder. */
    oldFile: text,
    newFile: text,
    /** The experiment that the old name leads to now; absent for none. */
    leadsTo: text.exactOptional(),
    /** A statement that keeps the old name, for `oldFile`. */
    alias: text,
  })
  .readonly();
/** A name that an experiment had in the old version. */
export type Former = z.infer<typeof former>;

const description = z
  .strictObject({
    /** The class that it extended. */
    base: text,
    place: text,
    /** First paragraph of its doc comment. */
    description: text,
    /** The last commit that changed its class; absent where a shallow clone does not hold it. */
    lastCommit: text.exactOptional(),
    /** The experiment that its name leads to now; absent for none. */
    leadsTo: text.exactOptional(),
  })
  .readonly();
/** An experiment as its source text declared it. */
export type Description = z.infer<typeof description>;

/** The form of a row. */
export const experimentReport = z
  .strictObject({
    name: text,
    status: z.enum(statuses),
    /** The base class that an added experiment is shown against; absent where none has configs of its own. */
    against: text.exactOptional(),
    /** Its name in the old version, where that was another one. */
    former: former.exactOptional(),
    /** Description of a removed experiment. */
    was: description.exactOptional(),
    /** Of a removed experiment, those that it set itself. */
    constants: listOf(constantChange),
    fields: listOf(fieldChange),
    /** Absent where the models were not compared: nothing that they depend on changed. */
    effects: effects.exactOptional(),
    /** Absent where nothing that runs go on with changed, and where there are not two versions. */
    checkpoints: checkpointEffect.exactOptional(),
    /** Where its learning rates are not as they were. */
    learningRates: learningRateChange.exactOptional(),
    /** Absent where the configs differ, and where there are not two. */
    computed: computed.exactOptional(),
    /** Why the old version, or the new one, has no configs; or why its model could not be analysed. */
    oldError: failure.exactOptional(),
    newError: failure.exactOptional(),
  })
  .readonly();
/** Changes of one experiment. */
export type ExperimentReport = z.infer<typeof experimentReport>;

const declarationChange = z
  .strictObject({
    what: z.enum(['class', 'field', 'constant']),
    /** The classes that have the field, or set the constant; for a class, none. */
    of: listOf(text),
    /** Absent for additions. */
    old: text.exactOptional(),
    /** Absent for removals. */
    new: text.exactOptional(),
    /** Whether the rename is a guess: without an alias, one name went and one came with the same content. */
    isGuess: z.literal(true).exactOptional(),
    /** Whether the class is the same, and its short name `old` means another one now, or none. */
    isShared: z.literal(true).exactOptional(),
    /** Value of a field that only one version has, if it is the same everywhere. */
    value: text.exactOptional(),
    /** The experiments in which it was seen. */
    experiments: listOf(text),
  })
  .refine(isThere, oneOfBoth)
  .readonly();
/** A class, a field of a class or a constant that an alias gives another name, or that only one version has. */
export type DeclarationChange = z.infer<typeof declarationChange>;

/** One of the two versions. */
const versionName = z
  .strictObject({
    /** `main (3f9c2d1)`, `the working tree`, or an experiment's name. */
    label: text,
    /** The commit; absent for a working tree with changes of its own. */
    commit: text.exactOptional(),
  })
  .readonly();

/** The form of a report. */
export const diffReport = z
  .strictObject({
    format: z.literal('luthier-config-diff'),
    version: z.literal(1),
    old: versionName,
    new: versionName,
    /** In the order of `statuses`, then by name; unchanged ones are only counted. */
    experiments: listOf(experimentReport),
    declarations: listOf(declarationChange),
    /** Experiments of the versions that source text does not tell, found by loading; absent for none. */
    loaded: z
      .strictObject({ old: listOf(text), new: listOf(text) })
      .readonly()
      .exactOptional(),
    /** Thresholds that need a label, by the base's review settings. */
    thresholds: listOf(thresholdSchema),
    unchanged: count,
    /** How many experiments there are in the working tree that the change cannot reach, and that were not looked at. */
    untouched: count,
    /** Caveats of the comparison for its readers. */
    notes: listOf(text),
  })
  .readonly();
/** Document of `luthier diff --format=json`. */
export type DiffReport = z.infer<typeof diffReport>;
