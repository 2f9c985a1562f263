/** @file Colours and a progress line, on terminals only. */
import type { styleText } from 'node:util';
import { printable, styled } from './output.js';

/** Colours a text, or returns it unchanged without a terminal. */
export type Paint = (style: Parameters<typeof styleText>[0], text: string) => string;

/** No colours. */
export const plain: Paint = (_, text) => text;

/** Colours for a terminal, unless NO_COLOR is set. Their text is for `writeText`. */
export function paintFor(stream: NodeJS.WriteStream): Paint {
  const allowed = stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
  return allowed ? styled : plain;
}

/** A progress line on stderr, cleared when the command ends. Silent without a terminal. */
export class Progress {
  private done = 0;

  constructor(private readonly total: number) {}

  /** Counts a finished item. */
  add(name: string): void {
    this.done += 1;
    this.write(`${this.done} of ${this.total}: ${name}`);
  }

  /** Clears the line. */
  end(): void {
    this.write('');
  }

  private write(text: string): void {
    const { stderr } = process;
    if (stderr.isTTY === true)
      stderr.write(`\r${printable(text).slice(0, (stderr.columns || 80) - 1)}\x1b[K`);
  }
}
