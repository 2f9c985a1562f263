/** @file Parts of an experiment that are fingerprinted, and the form of their fingerprints. */

/** Parts of an experiment with fingerprints. */
export const fingerprinted = [
  'training step',
  'optimizer update',
  'evaluation',
  'initial values',
  'input',
  'reading ahead',
  'decoding',
  'programs',
] as const;
export type FingerprintedPart = (typeof fingerprinted)[number];

/** A part's fingerprint, as far as there is one. */
export interface PartDigest {
  /** Another one where another thing is computed or read. */
  readonly hash?: string;
  /** Another one where other operations are done, or on other shapes: of programs. */
  readonly operations?: string;
  /** Another one where other rows are read: of inputs. */
  readonly given?: string;
  /** Of the operations of a kind in a layer, by both: of programs. */
  readonly places?: Readonly<Record<string, string>>;
  /** Digests of what was read, each with a text for readers, by dataset and row. */
  readonly rows?: Readonly<Record<string, readonly [digest: string, text: string]>>;
  /** Whether values were drawn or read of which there are more, so that other code may show elsewhere. */
  readonly isSampled?: true;
  /** Why there is none, or why it does not cover all of the part. */
  readonly notCompared?: string;
  /** Of what there is none, since it fails: datasets by their names, or the whole part. */
  readonly failed?: readonly string[];
  /** Digests of sources that do their part when a job runs and not here, by their names. */
  readonly notRun?: Readonly<Record<string, string>>;
}

export type Fingerprint = Readonly<Record<FingerprintedPart, PartDigest>>;

/** Parts of training that a run goes on with: equal ones give the same bits. */
export const trainingParts = [
  'loss or gradients',
  'metrics or summaries',
  'optimizer update',
  'rows of the data',
  'random draws',
] as const;
type TrainingPart = (typeof trainingParts)[number];

export type TrainingFingerprint = Readonly<Record<TrainingPart, PartDigest>>;
