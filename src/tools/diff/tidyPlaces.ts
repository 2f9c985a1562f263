/** @file Places of documents as they are the same on every machine. */
import { isAbsolute, relative } from 'node:path';
import type { AnalysisDocument, ConfigEntry, ExperimentDocument, Failure } from './protocol.js';
import type { Tree } from './tree.js';

/** A document whose places are told from the project, those in the library from `luthier/`. */
export function tidiedDocument(document: ExperimentDocument, tree: Tree): ExperimentDocument {
  if ('error' in document) return { ...document, error: tidiedFailure(document.error, tree) };
  const entry = (each: ConfigEntry): ConfigEntry => {
    const places = Object.entries(each.places).map(([name, place]) => [name, tidyPlace(place, tree)]);
    return { ...each, places: Object.fromEntries(places) as ConfigEntry['places'] };
  };
  const { config } = document;
  return { ...document, config: { ...config, configs: config.configs.map(entry) } };
}

/** As `tidiedDocument`, of an analysis. */
export function tidiedAnalysis(document: AnalysisDocument, tree: Tree): AnalysisDocument {
  if (!('notAnalysed' in document)) return document;
  return { ...document, notAnalysed: tidiedFailure(document.notAnalysed, tree) };
}

function tidiedFailure({ message, place }: Failure, tree: Tree): Failure {
  const told = message.replaceAll(`${tree.project}/`, '').replaceAll(`${tree.root}/`, '');
  return place === undefined ? { message: told } : { message: told, place: tidyPlace(place, tree) };
}

/** `file:line` from the project's folder; a flag's text is left as it is. */
function tidyPlace(place: string, { root, project, library }: Tree): string {
  const isApart = library !== root && !library.startsWith(`${root}/`);
  if (isApart && place.startsWith(`${library}/`)) return `luthier${place.slice(library.length)}`;
  const file = isAbsolute(place) ? relative(project, place) : place;
  return file.replace(/^(?:\.\.\/)*node_modules\/luthier\//, 'luthier/');
}
