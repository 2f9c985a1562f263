/** @file The commands of `luthier`, by name; each is loaded when it is asked for. */
import type { Command } from './command.js';

/** A command before it is loaded. */
interface CommandEntry {
  /** One sentence for the list of commands, which is shown without loading them. */
  readonly about: string;
  readonly load: () => Promise<Command>;
}

/** In the order of --help. */
export const commands: Readonly<Record<string, CommandEntry>> = {
  list: {
    about: 'Lists the experiments: where they stand, what they extend, what they set themselves.',
    load: async () => (await import('./list/index.js')).list,
  },
};
