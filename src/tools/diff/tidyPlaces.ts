/** @file Places of documents as they are the same on every machine. */
import { isAbsolute, relative } from 'node:path';
import type { Answer, ConfigEntry, Failure } from './protocol.js';
import type { Tree } from './tree.js';

/** An answer whose places are told from the project, those in the library from `luthier/`. */
export function tidied(answer: Answer, tree: Tree): Answer {
  const failure = ({ message, place }: Failure): Failure =>
    place === undefined ? { message } : { message, place: tidyPlace(place, tree) };
  const entry = (each: ConfigEntry): ConfigEntry => {
    const places = Object.entries(each.places).map(([name, place]) => [name, tidyPlace(place, tree)]);
    return { ...each, places: Object.fromEntries(places) as ConfigEntry['places'] };
  };
  if ('ready' in answer) return answer;
  if ('analysis' in answer) {
    const { analysis } = answer;
    if (!('notAnalysed' in analysis)) return answer;
    return { analysis: { ...analysis, notAnalysed: failure(analysis.notAnalysed) } };
  }
  const { experiment } = answer;
  if ('error' in experiment) return { experiment: { ...experiment, error: failure(experiment.error) } };
  const { config } = experiment;
  return { experiment: { ...experiment, config: { ...config, configs: config.configs.map(entry) } } };
}

/** `file:line` from the project's folder; a flag's text is left as it is. */
export function tidyPlace(place: string, { root, project, library }: Tree): string {
  const isApart = library !== root && !library.startsWith(`${root}/`);
  if (isApart && place.startsWith(`${library}/`)) return `luthier${place.slice(library.length)}`;
  const file = isAbsolute(place) ? relative(project, place) : place;
  return file.replace(/^(?:\.\.\/)*node_modules\/luthier\//, 'luthier/');
}
