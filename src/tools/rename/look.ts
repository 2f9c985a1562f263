/** @file Places that a person has to look at: the name stands there, and what it means cannot be known. */
import type { Sources, ts } from './sources.js';

/** One place. */
export interface Look {
  /** Absolute. */
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** The line, without the spaces around it. */
  readonly text: string;
  readonly why: string;
}

/** The places, each once: what was told of a line first stays. */
export class Looks {
  private readonly byPlace = new Map<string, Look>();

  constructor(private readonly sources: Sources) {}

  /** Adds the line of `position` in a file. */
  at(file: string, position: number, why: string): void {
    const text = this.sources.textOf(file);
    const start = text.lastIndexOf('\n', position - 1) + 1;
    const end = text.indexOf('\n', position);
    const line = text.slice(0, start).split('\n').length;
    const place = `${file}:${line}`;
    if (this.byPlace.has(place)) return;
    const shown = text.slice(start, end === -1 ? undefined : end).trim();
    this.byPlace.set(place, { file, line, text: shown, why });
  }

  atNode(node: ts.Node, why: string): void {
    const file = node.getSourceFile();
    this.at(this.sources.fileOf(file), node.getStart(file), why);
  }

  /** In the order of files and lines. */
  get all(): Look[] {
    return [...this.byPlace.values()].sort((a, b) =>
      a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1,
    );
  }
}
