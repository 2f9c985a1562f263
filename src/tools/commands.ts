/** @file The commands of `luthier`, by name; each is loaded when it is asked for. */
import type { Command } from './command.js';

/** In the order of --help. */
export const commands: Readonly<Record<string, () => Promise<Command>>> = {};
