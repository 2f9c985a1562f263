/** @file Printed tree of a layer: its children by name, their classes and variables. */
import type { BaseLayer } from './base.js';

/** `w [4, 3], b [3]`: the layer's own variables; those of repetitions begin with their number. */
const variablesOf = (layer: BaseLayer): string =>
  [...layer.variables].map(([name, { shape }]) => `${name} [${shape.join(', ')}]`).join(', ');

/**
 * The layers below `root` as an indented tree, a line for each: its name, class and own variables with their shapes. A layer
 * with several parents is opened at the first.
 */
export function layerTree(root: BaseLayer): string {
  const opened = new Set<BaseLayer>();
  const lines: string[] = [];
  const add = (layer: BaseLayer, title: string, lead: string, indent: string): void => {
    const isShared = opened.has(layer);
    opened.add(layer);
    const detail = isShared ? `the same as ${layer.path}` : variablesOf(layer);
    lines.push(`${lead}${title}${layer.constructor.name}${detail && ` · ${detail}`}`);
    const children = isShared ? [] : [...layer.children];
    for (const [i, [name, child]] of children.entries()) {
      const isLast = i === children.length - 1;
      add(child, `${name}: `, `${indent}${isLast ? '└ ' : '├ '}`, `${indent}${isLast ? '  ' : '│ '}`);
    }
  };
  add(root, '', '', '');
  return lines.join('\n');
}
