/** @file What a renaming would do: the files that change, what to look at by hand, and what the compiler would say. */
import type { ChangedFile, Edits } from './edits.js';
import type { Look, Looks } from './look.js';
import { commentsNaming } from './prose.js';
import type { Sources, ts } from './sources.js';
import { type CompilerError, newTypeErrors } from './typeErrors.js';

/** A renaming, worked out. */
export interface Plan {
  /** The folder of the project. */
  readonly root: string;
  /** `Linear.inputDims`, and what it is called after. */
  readonly old: string;
  readonly present: string;
  readonly files: readonly ChangedFile[];
  readonly looks: readonly Look[];
  /** Errors of the compiler that are not there now. */
  readonly errors: readonly CompilerError[];
}

/** What was found of a renaming. */
interface Findings {
  readonly old: string;
  readonly present: string;
  /** The bare name that changes. */
  readonly name: string;
  readonly edits: Edits;
  readonly looks: Looks;
  /** Strings of which it is known what they mean. */
  readonly settled: ReadonlySet<ts.Node>;
}

/** Works the edits out, and what the compiler says of them. */
export function planOf(sources: Sources, { old, present, name, edits, looks, settled }: Findings): Plan {
  const files = edits.apply((file) => sources.textOf(file));
  for (const changed of files) {
    for (const position of commentsNaming(sources, changed, name, settled))
      looks.at(changed.file, position, 'a text or comment names it');
  }
  const listed = looks.all;
  const typed = files.filter(({ file }) => sources.program.getSourceFile(file) !== undefined);
  const errors = newTypeErrors(sources, new Map(typed.map(({ file, after }) => [file, after])));
  return { root: sources.root, old, present, files, looks: listed, errors };
}
