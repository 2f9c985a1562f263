/** @file What a config file assigns: values and nested fields, each to a path, each with its line. */
import type { ConfigError } from '../errors.js';
import type { Segment } from '../walking/paths.js';

/** One thing that a file sets. */
export interface Assignment {
  readonly path: readonly Segment[];
  /** A plain value, a config, or a `Section`. */
  readonly value: unknown;
  /** `file:line`. */
  readonly place: string;
}

/** Nested fields: assignments to the parts of what stands there, or, where no config does, a record. */
export class Section {
  /** What to throw where it is a record that would replace what the file set before. */
  refuseRecord: ConfigError | undefined;

  constructor(
    /** What it assigns; the paths begin at the section's own place. */
    readonly assignments: readonly Assignment[],
    /** The record that it is where it cannot be gone into. */
    readonly toRecord: () => unknown,
  ) {}
}
