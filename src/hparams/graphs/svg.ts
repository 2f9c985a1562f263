/** @file Graphs of configs as SVG, laid out by Graphviz compiled to WebAssembly. */
import { type GraphOptions, toDot } from './dot.js';

/** The graph of `root`, as `toDot` has it, as the text of an SVG file. Needs no network and no installed Graphviz. */
export async function toSvg(root: unknown, options: GraphOptions = {}): Promise<string> {
  return svgOf(toDot(root, options));
}

/** Lays out a graph in the DOT language. */
export async function svgOf(dot: string): Promise<string> {
  // Loaded when first needed: a megabyte of WebAssembly that most runs have no use for.
  const { Graphviz } = await import('@hpcc-js/wasm-graphviz');
  const graphviz = await Graphviz.load();
  // Where there is no Arial, a font like it.
  return graphviz
    .layout(dot, 'svg', 'dot')
    .replaceAll('font-family="Arial"', 'font-family="Arial,Helvetica,sans-serif"');
}
