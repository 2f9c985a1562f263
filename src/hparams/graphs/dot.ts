/** @file Graphviz graphs of configs: a box for each config, an edge for each place where it is. */
import { append } from '../nodes/containers.js';
import { type ConfigNode, nodeOf } from '../nodes/node.js';
import {
  ClassLabels,
  fieldItems,
  type Item,
  isSplit,
  kindText,
  leafText,
  partItems,
  rootItem,
} from '../printing/items.js';
import { formatSegment } from '../walking/paths.js';
import { type Box, type Cell, colourOf, cut, type Direction, dim, dotOf } from './html.js';
import { textWidth } from './textWidths.js';

export interface GraphOptions {
  /**
   * Display of unset values: grey, with sub-configs named but not drawn (`dim`), not at all (`hide`), or like
   * the others (`show`). The default is `dim`.
   */
  readonly defaults?: 'dim' | 'hide' | 'show';
  /** Configs that take more steps from the root are named but not drawn. */
  readonly maxDepth?: number;
  /** Longer names and values are cut to so many characters; the default is 40. */
  readonly maxStringLength?: number;
  /** Which way the edges point; the default is left to right. */
  readonly direction?: Direction;
  /**
   * Customises the cells of a value, or of a config other than the root, given the usual ones; undefined keeps those.
   * A config with cells of its own gets no box.
   */
  readonly render?: (value: unknown, usual: readonly Cell[]) => string | readonly Cell[] | undefined;
}

/** A value that gets a box, with its references. */
interface Place {
  readonly box: Box;
  readonly item: Item;
  readonly path: string;
  readonly depth: number;
}

/**
 * The graph of `root` in Graphviz's DOT language: a table for each config with its fields and values, arrows to the
 * configs that it holds; a config in several places is drawn once. Classes have colours of their own,
 * partials and factories a dashed border.
 */
export function toDot(root: unknown, options: GraphOptions = {}): string {
  return dotOf(new Drawing(options).draw(root), options.direction ?? 'LR');
}

// The paths of a long chain, written out in full, would take space that grows with the square of its length.
export const deepestPath = 64;

/** Boxes for the configs in a structure. */
export class Drawing {
  readonly boxes = new Map<ConfigNode, Box>();
  private readonly queue: Place[] = [];
  private readonly options: GraphOptions;
  private readonly longest: number;
  private labels = ClassLabels.in();

  constructor(options: GraphOptions) {
    this.options = options;
    this.longest = options.maxStringLength ?? 40;
  }

  /** Breadth first, so that `maxDepth` counts the shortest way to each config. */
  draw(root: unknown): Box[] {
    this.labels = ClassLabels.in(root);
    const item = rootItem(root);
    const node = nodeOf(root);
    const box = node === undefined ? plainBox(root) : boxOf(node, '<root>', this.labels);
    if (node !== undefined) this.boxes.set(node, box);
    this.queue.push({ box, item, path: '', depth: 0 });
    for (const place of this.queue) this.fill(place);
    return this.queue.map((place) => place.box);
  }

  private fill(place: Place): void {
    const { item, box } = place;
    const node = nodeOf(item.value);
    if (node === undefined && !isSplit(item.value)) {
      box.rows.push({ name: { text: 'value' }, tags: [], value: this.valueCells(item), targets: [] });
      return;
    }
    const items =
      node === undefined ? partItems(item) : fieldItems(node, item, this.options.defaults === 'hide');
    const open = items.map((each) => ({ each, name: formatSegment(each.segment!, true) })).reverse();
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const { each, name } = next;
      if (isSplit(each.value) && this.isFollowed(each)) {
        const parts = partItems(each).map((part) => ({
          each: part,
          name: name + formatSegment(part.segment!, false),
        }));
        append(open, parts.reverse());
      } else this.addRow(place, each, name);
    }
  }

  private isFollowed(item: Item): boolean {
    return item.state !== 'default' || this.options.defaults === 'show';
  }

  private addRow(place: Place, item: Item, name: string): void {
    const node = nodeOf(item.value);
    const grey = item.state === 'default' && this.options.defaults !== 'show' ? { colour: dim } : {};
    const usual = this.valueCells(item);
    const own = item.state === 'unset' ? undefined : this.options.render?.(item.value, usual);
    const target = node === undefined || own !== undefined ? undefined : this.boxFor(node, item, place, name);
    const isCutOff = node !== undefined && own === undefined && target === undefined && this.isFollowed(item);
    const value = typeof own === 'string' ? [{ text: own }] : (own ?? usual);
    place.box.rows.push({
      name: { text: cut(name, this.longest), ...grey },
      tags: item.tags,
      value: isCutOff ? [...value, { text: '…', colour: dim }] : value,
      targets: target === undefined ? [] : [target],
    });
  }

  private valueCells(item: Item): Cell[] {
    const node = nodeOf(item.value);
    const isGrey = item.state === 'default' && this.options.defaults !== 'show';
    const text = cut(node === undefined ? leafText(item) : kindText(node, this.labels), this.longest);
    if (item.state === 'unset') return [{ text, colour: '#c5221f', italic: true }];
    return [isGrey ? { text, colour: dim } : { text }];
  }

  /** The box of a config in a row, or undefined where it is not drawn. */
  private boxFor(node: ConfigNode, item: Item, parent: Place, name: string): Box | undefined {
    const known = this.boxes.get(node);
    if (known !== undefined || !this.isFollowed(item)) return known;
    const depth = parent.depth + 1;
    if (depth > (this.options.maxDepth ?? Number.POSITIVE_INFINITY)) return undefined;
    const before = depth % deepestPath === 0 ? '…' : parent.path;
    const path = before === '' || name.startsWith('[') ? before + name : `${before}.${name}`;
    const box = boxOf(node, path, this.labels);
    this.boxes.set(node, box);
    this.queue.push({ box, item, path, depth });
    return box;
  }
}

/** An empty box. */
export function boxOf(node: Pick<ConfigNode, 'info' | 'kind'>, path: string, labels: ClassLabels): Box {
  const title: Cell[] = [{ text: labels.of(node.info), bold: true }];
  if (node.kind !== 'config') title.push({ text: node.kind, italic: true });
  return {
    title,
    colour: colourOf(node.info.name),
    dashed: node.kind !== 'config',
    tooltip: path,
    rows: [],
  };
}

/** The box of a structure that is no config. */
export function plainBox(value: unknown): Box {
  const name =
    typeof value === 'object' && value !== null ? (value.constructor?.name ?? 'Object') : typeof value;
  return {
    title: [{ text: name, bold: true }],
    colour: '#e8eaed',
    dashed: false,
    tooltip: '<root>',
    rows: [],
  };
}

/** The graph of `root`, as `toDot` has it, as the text of an SVG file. Needs no network and no installed Graphviz. */
export async function toSvg(root: unknown, options: GraphOptions = {}): Promise<string> {
  return svgOf(toDot(root, options));
}

/** Lays out a graph in the DOT language. */
export async function svgOf(dot: string): Promise<string> {
  // Loaded when first needed: a megabyte of WebAssembly that most runs have no use for.
  const { Graphviz } = await import('@hpcc-js/wasm-graphviz');
  const graphviz = await Graphviz.load();
  // Where there is no Arial, another font is drawn as wide as the boxes are made for.
  return graphviz
    .layout(dot, 'svg', 'dot')
    .replace(
      /(<text [^>]*)font-family="Arial"([^>]*)>([^<]*)/g,
      (_, before: string, after: string, text: string) => {
        const width = textWidth(graphviz, text, after.includes('font-weight="bold"')).toFixed(2);
        return `${before}font-family="${fonts}" textLength="${width}" lengthAdjust="spacingAndGlyphs"${after}>${text}`;
      },
    );
}

/** Arial and fonts of its widths, then any that is like it. */
const fonts = 'Arial,Helvetica,Liberation Sans,Arimo,sans-serif';
