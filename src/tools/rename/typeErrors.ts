/** @file What the compiler would say of the project after a change that it does not say before. */
import { type Sources, ts } from './sources.js';

/** An error of the compiler. */
export interface CompilerError {
  /** `file:line`. */
  readonly place: string;
  readonly message: string;
}

function errorsOf(sources: Sources, files: Iterable<string>): Map<string, CompilerError[]> {
  const errors = new Map<string, CompilerError[]>();
  const { program } = sources;
  // What imports nothing that changed has the errors that it had.
  const changed = [...files].flatMap((file) => program.getSourceFile(file) ?? []);
  for (const file of sources.dependents(changed)) {
    if (sources.isPage(file)) continue;
    for (const { code, messageText, start } of [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ]) {
      const message = ts.flattenDiagnosticMessageText(messageText, '\n');
      const { line } = file.getLineAndCharacterOfPosition(start ?? 0);
      const error = { place: `${sources.show(file.fileName)}:${line + 1}`, message: `TS${code}: ${message}` };
      // Lines move, and messages name what was renamed: how many errors of a kind a file has stays the same.
      const kind = `${file.fileName}:${code}`;
      errors.set(kind, [...(errors.get(kind) ?? []), error]);
    }
  }
  return errors;
}

/** The errors that are there once files have the texts `after`, and not before. The program has the new texts then. */
export function newTypeErrors(sources: Sources, after: ReadonlyMap<string, string>): CompilerError[] {
  const before = new Map([...after.keys()].map((file) => [file, sources.textOf(file)]));
  sources.overwrite(after);
  const found = errorsOf(sources, after.keys());
  if (found.size === 0) return [];
  sources.overwrite(before);
  const known = errorsOf(sources, after.keys());
  sources.overwrite(after);
  return [...found].flatMap(([kind, errors]) => {
    const old = (known.get(kind) ?? []).map(({ message }) => message);
    const added = errors.filter(({ message }) => !old.includes(message));
    return errors.length > old.length ? (added.length > 0 ? added : errors.slice(old.length)) : [];
  });
}
