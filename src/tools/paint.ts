/** @file Colours on a terminal, and nowhere else. */
import { styleText } from 'node:util';

/** Colours a text, or leaves it as it is where there is no terminal. */
export type Paint = (style: Parameters<typeof styleText>[0], text: string) => string;

/** No colours. */
export const plain: Paint = (_, text) => text;

/** Colours where `stream` is a terminal, unless NO_COLOR forbids them. */
export function paintFor(stream: NodeJS.WriteStream): Paint {
  const allowed = stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
  return allowed ? (style, text) => styleText(style, text, { validateStream: false }) : plain;
}
