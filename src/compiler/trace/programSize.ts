/** @file Bound on the operations of a traced program, and the layer that records most of them. */

import type { Node } from '../program/ir.js';
import { CompilerError } from '../program/tensors.js';
import { readScope } from './gradientScopes.js';

const DEFAULT_MOST = 250_000;
const VARIABLE = 'LUTHIER_MAX_OPERATIONS';

/** A program is so large that a number in a config is taken for a mistake. */
export class ProgramSizeError extends CompilerError {
  override readonly name = 'ProgramSizeError';
}

/** The most operations of a traced program. @throws ProgramSizeError where the environment has no such number */
export function mostOperations(env: NodeJS.ProcessEnv): number {
  const text = env[VARIABLE]?.trim() ?? '';
  const most = text === '' ? DEFAULT_MOST : Number(text);
  if (Number.isSafeInteger(most) && most > 0) return most;
  throw new ProgramSizeError(`${VARIABLE}: expected a positive integer, got '${text}'.`);
}

/** @throws ProgramSizeError that names the layer within which most operations are, and the number of its parts */
export function checkSize(nodes: readonly Node[], most: number): void {
  if (nodes.length <= most) return;
  const { path, parts } = ownerOf(nodes);
  const count = parts > 1 ? `, which calls ${parts.toLocaleString('en-US')} layers` : '';
  const where = path === '' ? '' : ` (in layer '${path}' most of them${count})`;
  throw new ProgramSizeError(
    `The program has more than ${most.toLocaleString('en-US')} operations${where}: a number in its config, such as ` +
      `that of the layers, is taken for a mistake. Repeat has one layer in the program, however often it is called; ${VARIABLE} sets another limit.`,
  );
}

/** The innermost layer with more than half of the operations, and how many parts of it have some. */
function ownerOf(nodes: readonly Node[]): { readonly path: string; readonly parts: number } {
  let within = nodes.map(({ scope }) => readScope(scope).layer.split('/'));
  for (let depth = 0; ; depth++) {
    const counts = new Map<string | undefined, number>();
    for (const path of within) counts.set(path[depth], (counts.get(path[depth]) ?? 0) + 1);
    const [part, count] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a));
    if (part !== undefined && part !== '' && count > nodes.length / 2) {
      within = within.filter((path) => path[depth] === part);
      continue;
    }
    counts.delete(undefined);
    return { path: within[0]!.slice(0, depth).join('/'), parts: counts.size };
  }
}
