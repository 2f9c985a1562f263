/** @file Works out the renaming of a field. */
import { basename } from 'node:path';
import { addOldName } from './aliases.js';
import { Classes } from './classes.js';
import { DocumentReader } from './configDocuments.js';
import { Edits } from './edits.js';
import { type FieldTarget, FieldUses } from './fieldUses.js';
import { ExperimentPaths, renameInFlags } from './flagTexts.js';
import { Looks } from './look.js';
import { editOf, type Mention } from './mentions.js';
import { Walker } from './pathText.js';
import { type Plan, planOf } from './plan.js';
import { isSnapshot } from './projectFiles.js';
import { Sources } from './sources.js';
import { StringFinder } from './strings.js';
import { checkFieldName, fieldMeant } from './target.js';

/**
 * What renaming `CLASS.field` does to the project in `root`. Nothing is written.
 *
 * @throws UsageError for a field that is not there, is not the only one of its name, or cannot have the new name.
 */
export function planFieldRename(
  root: string,
  text: string,
  newName: string,
  options: { alias: boolean },
): Plan {
  const sources = new Sources(root);
  const classes = new Classes(sources);
  const target = fieldMeant(sources, classes, text);
  checkFieldName(sources, classes, target, newName);
  const looks = new Looks(sources);
  const edits = new Edits();
  const uses = new FieldUses(sources, classes, target, looks);
  const walker = new Walker(sources, classes);
  for (const mention of uses.found) editMention(sources, target, mention, newName, options.alias, edits);
  const paths = new ExperimentPaths(classes, walker);
  const strings = new StringFinder(sources, classes, target, uses, walker, paths, looks, newName).find();
  for (const { literal, edit } of strings.edits) edits.add(sources.fileOf(literal.getSourceFile()), edit);
  uses.lookAtUnknown(strings.settled as ReadonlySet<Mention>);
  if (options.alias) {
    for (const schema of target.schemas) {
      if (!sources.isPage(schema.getSourceFile())) addOldName(sources, schema, target.name, newName, edits);
    }
  }
  editTexts(sources, { classes, target, uses, walker, paths, looks, edits, newName });
  const { owner, name } = target;
  return planOf(sources, {
    old: `${owner.name}.${name}`,
    present: `${owner.name}.${newName}`,
    name,
    edits,
    looks,
    settled: strings.settled,
  });
}

function editMention(
  sources: Sources,
  { schemas }: FieldTarget,
  mention: Mention,
  newName: string,
  alias: boolean,
  edits: Edits,
): void {
  const source = mention.getSourceFile();
  const schema = schemas.find((each) => each.name === mention);
  const isShorthand = schema !== undefined && schema.getEnd() === mention.getEnd();
  // The alias is written with the name.
  if (isShorthand && alias && !sources.isPage(source)) return;
  const whole = editOf(mention, newName);
  const edit =
    schema === undefined || isShorthand ? whole : { ...whole, end: Math.min(whole.end, mention.getEnd()) };
  edits.add(sources.fileOf(source), edit);
}

/** The files that are no TypeScript: scripts, workflows, pages, config files. */
function editTexts(
  sources: Sources,
  {
    classes,
    target,
    uses,
    walker,
    paths,
    looks,
    edits,
    newName,
  }: {
    classes: Classes;
    target: FieldTarget;
    uses: FieldUses;
    walker: Walker;
    paths: ExperimentPaths;
    looks: Looks;
    edits: Edits;
    newName: string;
  },
): void {
  const { name } = target;
  const texts = [...sources.texts].filter(([file]) => !/\.[cm]?[jt]sx?$/.test(file) && !isSnapshot(file));
  const given = texts.flatMap(([, text]) => [...text.matchAll(/--config_file(?:=|\s+)\\?["']?([\w./-]+)/g)]);
  const givenNames = new Set(given.map(([, file]) => basename(file!)));
  const reader = new DocumentReader(classes, walker, paths, (file) => givenNames.has(basename(file)));
  for (const [file, text] of texts) {
    if (!text.includes(name)) continue;
    renameInFlags(file, text, { paths, uses, name, newName, edits, looks });
    if (!/\.(json|ya?ml)$/.test(file)) continue;
    for (const found of reader.read(file, text)) {
      if (found.kind !== 'field' || found.name !== name) continue;
      const verdict = uses.verdict(found.declarations);
      if (verdict === 'ours') edits.add(file, { start: found.start, end: found.end, text: newName });
      else if (verdict !== 'other') looks.at(file, found.start, 'it is not known whose field this key sets');
    }
  }
}
