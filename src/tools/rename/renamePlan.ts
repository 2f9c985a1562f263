/** @file Plan of a rename: TypeScript's own edits, the alias, new compiler errors, mentions. */
import { Node, type PropertyAssignment, type SourceFile, ts } from 'ts-morph';
import { shellWord } from '../../system/text/index.js';
import { importName, oldClassNameEdit, oldNameEdits } from './aliases.js';
import { type ClassEntry, Classes, experimentName } from './classes.js';
import { formattedLike } from './formattedLike.js';
import { type Mention, mentionsOf } from './mentions.js';
import { RenameProject } from './renameProject.js';
import { checkClassName, checkFieldName, findClass, findField } from './target.js';
import { applyEdits, type Edit, editOf } from './textEdits.js';

/** A file before and after. */
export interface ChangedFile {
  /** Absolute. */
  readonly path: string;
  readonly before: string;
  readonly text: string;
}

/** An error of the compiler. */
export interface CompilerError {
  /** `file:line`. */
  readonly place: string;
  readonly message: string;
}

/** Effects of a renaming. */
export interface Plan {
  readonly root: string;
  /** `Linear.inputDims`, and its new name. */
  readonly old: string;
  readonly present: string;
  readonly files: readonly ChangedFile[];
  readonly mentions: readonly Mention[];
  /** Errors that are not there now. */
  readonly errors: readonly CompilerError[];
  /** What becomes of the old name, and what keeps it. */
  readonly notes: readonly string[];
}

/** Whether the old name is kept as an alias. */
interface Options {
  readonly alias: boolean;
}

type EditsByFile = Map<SourceFile, Edit[]>;

/**
 * Plans the renaming of a field in the project at `root`. Nothing is written.
 *
 * @throws UsageError for a missing field, or an invalid new name.
 */
export function planFieldRename(root: string, text: string, newName: string, { alias }: Options): Plan {
  const project = new RenameProject(root);
  const classes = new Classes(project.all);
  const target = findField(project, classes, text);
  checkFieldName(project, classes, target, newName);
  const { name, owner, family } = target;
  const before = new Map(project.sources.map((file) => [file, file.getFullText()]));
  // Renaming `{ steps }` would rename the constant that is its value.
  const schemas = target.schemas.map((schema) =>
    Node.isShorthandPropertyAssignment(schema)
      ? (schema.replaceWithText(`${name}: ${name}`) as PropertyAssignment)
      : schema,
  );
  const edits: EditsByFile = new Map();
  if (alias) {
    for (const schema of schemas)
      addEdits(edits, schema.getSourceFile(), oldNameEdits(schema, name, newName));
  }
  // TypeScript's renaming does not lead from a constant's schema to the class fields that override it.
  const overrides = owner.kind === 'class' ? [] : family.flatMap(({ node }) => node.getProperty(name) ?? []);
  for (const node of [...schemas, ...overrides]) rename(project, node.getNameNode(), newName, edits);
  const imported = alias ? new Set(schemas.map((schema) => schema.getSourceFile())) : [];
  return finish(project, before, edits, {
    ...{ old: `${owner.name}.${name}`, present: `${owner.name}.${newName}`, name },
    isKept: (line) => alias && line.includes('renamed('),
    changed: () => {
      for (const file of imported) importName(file, 'renamed', project.show(file.getFilePath()));
    },
  });
}

/**
 * Plans the renaming of a class in the project at `root`. Nothing is written.
 *
 * @throws UsageError for a missing or ambiguous class, or an invalid new name.
 */
export function planClassRename(root: string, text: string, newName: string, { alias }: Options): Plan {
  const project = new RenameProject(root);
  const entry = findClass(project, new Classes(project.all), text);
  checkClassName(project, entry, newName);
  const { node, name } = entry;
  const edits: EditsByFile = new Map();
  // No document names an experiment's class.
  const isAliased = alias && entry.kind === 'class';
  if (isAliased) addEdits(edits, node.getSourceFile(), [oldClassNameEdit(entry, newName)]);
  rename(project, node.getNameNodeOrThrow(), newName, edits);
  const file = node.getSourceFile();
  const before = new Map([...edits.keys()].map((each) => [each, each.getFullText()]));
  return finish(project, before, edits, {
    ...{ old: fullName(entry, name), present: fullName(entry, newName), name },
    notes: experimentName(entry) === undefined ? [] : [experimentNote(project, entry, newName)],
    isKept: (line) => isAliased && (line.startsWith('registerAlias(') || line.startsWith('// Configs that')),
    changed: () => {
      if (isAliased) importName(file, 'registerAlias', project.show(file.getFilePath()));
    },
  });
}

function fullName(entry: ClassEntry, name: string): string {
  return experimentName({ ...entry, name }) ?? name;
}

/** What ends with an experiment's name. */
function experimentNote(
  project: RenameProject,
  { node, name, ...entry }: ClassEntry,
  newName: string,
): string {
  const old = experimentName({ node, name, ...entry })!;
  const file = project.show(node.getSourceFile().getFilePath());
  return (
    `--exp=${shellWord(old)} leads nowhere from now on, and its runs do not resume under the new name. ` +
    `\`export { ${newName} as ${name} };\` in ${file} keeps the old name.`
  );
}

function addEdits(edits: EditsByFile, file: SourceFile, added: readonly Edit[]): void {
  edits.set(file, [...(edits.get(file) ?? []), ...added]);
}

function rename(project: RenameProject, name: Node, newName: string, edits: EditsByFile): void {
  const service = name.getProject().getLanguageService();
  const found = service.findRenameLocations(name as never, { usePrefixAndSuffixText: true });
  for (const location of found) {
    const file = location.getSourceFile();
    if (project.isOwn(file)) addEdits(edits, file, [editOf(location, newName)]);
  }
}

function finish(
  project: RenameProject,
  before: ReadonlyMap<SourceFile, string>,
  edits: EditsByFile,
  {
    old,
    present,
    name,
    notes = [],
    isKept,
    changed,
  }: {
    old: string;
    present: string;
    name: string;
    notes?: readonly string[];
    isKept: (line: string) => boolean;
    /** Called once the sources have their new texts. */
    changed: () => void;
  },
): Plan {
  const files = [...edits.keys()];
  const reached = dependents(project, files);
  const known = new Set(errorsOf(project, reached).map(({ key }) => key));
  for (const [file, own] of edits) file.replaceWithText(applyEdits(file.getFullText(), own));
  changed();
  for (const file of files) {
    const text = formattedLike(project.root, file.getFilePath(), before.get(file)!, file.getFullText());
    if (text !== file.getFullText()) file.replaceWithText(text);
  }
  const errors = errorsOf(project, reached).filter(({ key }) => !known.has(key));
  return {
    ...{ root: project.root, old, present },
    files: files
      .map((file) => ({ path: file.getFilePath(), before: before.get(file)!, text: file.getFullText() }))
      .sort((a, b) => (a.path < b.path ? -1 : 1)),
    mentions: mentionsOf(project, name, isKept),
    errors: errors.map(({ place, message }) => ({ place, message })),
    notes,
  };
}

/** The project's files that import one of `files`, directly or through others; those themselves among them. */
function dependents(project: RenameProject, files: readonly SourceFile[]): SourceFile[] {
  const reached = new Set(files);
  for (const file of reached) for (const importer of file.getReferencingSourceFiles()) reached.add(importer);
  return [...reached].filter((file) => project.isOwn(file));
}

/** The compiler's errors; `key` is the same for an error that only moved to another line. */
function errorsOf(
  project: RenameProject,
  files: readonly SourceFile[],
): (CompilerError & { readonly key: string })[] {
  return files.flatMap((file) => {
    const path = project.show(file.getFilePath());
    const counts = new Map<string, number>();
    return file.getPreEmitDiagnostics().map((diagnostic) => {
      const text = ts.flattenDiagnosticMessageText(diagnostic.compilerObject.messageText, '\n');
      const message = `TS${diagnostic.getCode()}: ${text}`;
      const count = counts.get(message) ?? 0;
      counts.set(message, count + 1);
      const place = `${path}:${diagnostic.getLineNumber() ?? 1}`;
      return { place, message, key: `${path}:${message}:${count}` };
    });
  });
}
