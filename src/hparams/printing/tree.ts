/** @file Configs as a tree for a terminal. */

import { styleText } from 'node:util';
import { append } from '../nodes/containers.js';
import { type ConfigNode, nodeOf } from '../nodes/node.js';
import { formatSegment } from '../walking/paths.js';
import {
  ClassLabels,
  fieldItems,
  type Item,
  isSplit,
  kindText,
  leafText,
  oneLine,
  partItems,
  pathText,
  rootItem,
} from './items.js';

interface TreeOptions {
  /** Colours; without it, where the stream is a terminal and the environment does not object. */
  readonly colour?: boolean;
  /** Where the tree is going to be written: its width and colours count. The default is the standard output. */
  readonly stream?: NodeJS.WriteStream;
  /** How many levels of configs are opened. */
  readonly maxDepth?: number;
  /** Longer lines are cut to so many columns; the default is the width of the terminal. */
  readonly maxWidth?: number;
  /** Display of unset values; the default is `dim`. */
  readonly defaults?: 'show' | 'dim' | 'mark' | 'hide';
  /** Adds the fields' descriptions behind their values. */
  readonly descriptions?: boolean;
}

// Limit of the indentation: lines of a long chain would otherwise grow with its length.
const deepestIndent = 32;

interface Open {
  readonly item: Item;
  readonly path: string;
  /** Indentation of the line, and of its parts. */
  readonly lead: string;
  readonly indent: string;
  readonly level: number;
  readonly depth: number;
}

type Piece = readonly [style: Style | undefined, text: string];

/**
 * The tree of `root`: a line for each field, sub-configs and containers of them indented. A config in
 * several places is opened at the first, `↑ same as` it at the others; one that is 32 levels deep has a tree of its
 * own below.
 */
export function printTree(root: unknown, options: TreeOptions = {}): string {
  const stream = options.stream ?? process.stdout;
  const paint = painter(options.colour, stream);
  const width = options.maxWidth ?? (stream.isTTY ? stream.columns : Number.POSITIVE_INFINITY);
  const tree = new Tree(options, root);
  tree.add(root);
  return tree.lines.map((pieces) => paintLine(pieces, paint, width)).join('\n');
}

class Tree {
  readonly lines: Piece[][] = [];
  private readonly met = new Map<ConfigNode, string>();
  private readonly later: Open[] = [];
  private readonly options: TreeOptions;
  private readonly labels: ClassLabels;

  constructor(options: TreeOptions, root: unknown) {
    this.options = options;
    this.labels = ClassLabels.in(root);
  }

  add(root: unknown): void {
    this.addFrom({ item: rootItem(root), path: '', lead: '', indent: '', level: 0, depth: 0 });
    for (const next of this.later) {
      this.lines.push([]);
      this.addFrom(next);
    }
  }

  private addFrom(start: Open): void {
    const open = [start];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      append(open, this.addLine(next, next === start).reverse());
    }
  }

  /** Adds the line of one value; returns its parts. */
  private addLine(at: Open, isStart: boolean): Open[] {
    const { item, path } = at;
    const node = nodeOf(item.value);
    const first = node && this.met.get(node);
    if (node === undefined) {
      const parts = isSplit(item.value) ? partItems(item) : undefined;
      this.addText(at, [parts === undefined ? [valueStyle(item), leafText(item)] : sizePiece(parts.length)]);
      return parts === undefined ? [] : this.below(at, parts);
    }
    const pieces: Piece[] = [['cyan', kindText(node, this.labels)]];
    if (first !== undefined && !isStart) {
      this.addText(at, [...pieces, ['dim', ` ↑ same as ${pathText(first)}`]]);
      return [];
    }
    this.met.set(node, path);
    const items = fieldItems(node, item, this.options.defaults === 'hide');
    if (items.length > 0 && at.depth >= (this.options.maxDepth ?? Number.POSITIVE_INFINITY)) {
      this.addText(at, [...pieces, ['dim', ' …']]);
    } else if (at.level >= deepestIndent) {
      const label = `@${this.later.length + 1}`;
      this.later.push({ ...at, path: label, lead: '', indent: '', level: 0 });
      this.addText(at, [...pieces, ['dim', ` ↓ ${label}`]]);
    } else {
      this.addText(at, pieces);
      return this.below({ ...at, depth: at.depth + 1 }, items);
    }
    return [];
  }

  private below(at: Open, items: Item[]): Open[] {
    return items.map((item, i) => {
      const last = i === items.length - 1;
      return {
        item,
        path: at.path + formatSegment(item.segment!, at.path === ''),
        lead: `${at.indent}${last ? '└─ ' : '├─ '}`,
        indent: `${at.indent}${last ? '   ' : '│  '}`,
        level: at.level + 1,
        depth: at.depth,
      };
    });
  }

  private addText(at: Open, value: Piece[]): void {
    const { item, path } = at;
    const { defaults = 'dim', descriptions = false } = this.options;
    const pieces: Piece[] = [['dim', at.lead]];
    const name = at.lead === '' ? path : formatSegment(item.segment!, true);
    if (name !== '') {
      const tags = item.tags.map((tag) => ['magenta', ` ${tag}`] as const);
      pieces.push([undefined, oneLine(name)], ...tags, [undefined, ': ']);
    }
    pieces.push(...value);
    if (item.state === 'default' && defaults === 'mark') pieces.push(['dim', ' (default)']);
    const description = item.whole ? item.field?.description : undefined;
    if (descriptions && description !== undefined) pieces.push(['dim', `  # ${oneLine(description)}`]);
    const dimmed = item.state === 'default' && defaults === 'dim';
    this.lines.push(dimmed ? pieces.map(([, text]) => ['dim', text] as const) : pieces);
  }
}

function sizePiece(size: number): Piece {
  return ['dim', `${size} ${size === 1 ? 'item' : 'items'}`];
}

function valueStyle(item: Item): Style | undefined {
  if (item.state === 'unset') return 'yellow';
  return typeof item.value === 'string' ? 'green' : undefined;
}

function paintLine(pieces: Piece[], paint: Paint, width: number): string {
  const whole = pieces.map(([, text]) => text).join('');
  const fitting = cutTo(whole, width);
  let left = fitting === whole ? whole.length : fitting.length - 1;
  let line = '';
  for (const [style, text] of pieces) {
    const shown = text.slice(0, left);
    left -= shown.length;
    if (shown !== '') line += style === undefined ? shown : paint(style, shown);
  }
  return fitting === whole ? line : `${line}…`;
}

/** A style of `styleText`. */
type Style = Parameters<typeof styleText>[0];

/** Puts a style on a text, or leaves it as it is. */
type Paint = (style: Style, text: string) => string;

/**
 * Paints where `colour` is true; where it is undefined, if `stream` is a terminal with colours. Then the environment
 * has a say, too: NO_COLOR, NODE_DISABLE_COLORS and FORCE_COLOR.
 */
function painter(colour: boolean | undefined, stream: NodeJS.WriteStream = process.stdout): Paint {
  if (colour === false) return (_, text) => text;
  if (colour === true) return (style, text) => styleText(style, text, { validateStream: false });
  return (style, text) => styleText(style, text, { stream });
}

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u;
const invisible = /[\p{Mn}\p{Me}\p{Cf}]/u;

function columnsOf(character: string): number {
  // Most text is plain ASCII, and the patterns are slow.
  if (character < '\u0300') return 1;
  return invisible.test(character) ? 0 : wide.test(character) ? 2 : 1;
}

/** The text, truncated to `columns` columns of a terminal, with `…` for the rest. */
function cutTo(text: string, columns: number): string {
  if (text.length * 2 <= columns) return text;
  let used = 0;
  let kept = 0;
  let fits = '';
  for (const character of text) {
    used += columnsOf(character);
    if (used > columns) return `${fits}…`;
    kept += character.length;
    if (used <= columns - 1) fits = text.slice(0, kept);
  }
  return text;
}
