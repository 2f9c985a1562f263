/** @file Command lines from tables of flags. */
import { describe, expect, it } from 'vitest';
import {
  type FlagTable,
  flagsHelp,
  nonEmpty,
  oneOf,
  parseFlagTable,
  positive,
  valuesOf,
} from '../../../src/cli/commandLine/flagTable.js';

const table = {
  out: { key: 'out', value: 'FILE', about: 'Where to write.', parse: nonEmpty },
  depth: { key: 'depth', value: 'N', about: 'How deep.', parse: positive(true) },
  scale: { key: 'scale', value: 'X', about: 'How large.', parse: positive(false) },
  kind: { key: 'kind', value: 'KIND', about: 'Which.', parse: oneOf(['svg', 'dot']) },
  show: { key: 'show', value: 'WHAT', whenBare: 'all', about: 'What to show.', parse: nonEmpty },
  tag: { key: 'tags', value: 'TAG', repeated: true, about: 'A tag.', parse: nonEmpty },
  help: { key: 'help', about: 'Shows this.', parse: () => true },
} satisfies FlagTable;

function parsed(...argv: string[]) {
  const { given, positionals } = parseFlagTable(argv, table);
  return { ...valuesOf(given), positionals };
}

describe('parseFlagTable', () => {
  it('takes values behind a sign and as the next argument, switches, and arguments in between', () => {
    expect(parsed('a', '--out=x=y', '--depth', '3', 'b', '--help')).toEqual({
      out: 'x=y',
      depth: 3,
      help: true,
      positionals: ['a', 'b'],
    });
    expect(parsed('-h')).toEqual({ help: true, positionals: [] });
  });

  it('lists flags that are repeated; of others the last counts', () => {
    expect(parsed('--tag=a', '--depth=1', '--tag', 'b', '--depth=2')).toMatchObject({
      tags: ['a', 'b'],
      depth: 2,
    });
  });

  it('has a value for a flag without one, which then takes no other argument', () => {
    expect(parsed('--show', 'x')).toEqual({ show: 'all', positionals: ['x'] });
    expect(parsed('--show=some')).toMatchObject({ show: 'some' });
  });

  it.each([
    ['--dpeth=1', /^Unknown flag --dpeth\. Did you mean '--depth'\? The flags are: --out, --depth, /],
    ['--constructor=1', /^Unknown flag --constructor\./],
    ['--depth=0', /^--depth: expected a positive integer; got '0'\.$/],
    ['--depth=1.5', /^--depth: expected a positive integer; got '1\.5'\.$/],
    ['--depth= ', /^--depth: expected a positive integer; got ' '\.$/],
    ['--scale=Infinity', /^--scale: expected a positive number; got 'Infinity'\.$/],
    ['--kind=svgg', /^--kind: expected one of svg, dot; got 'svgg'\. Did you mean 'svg'\?$/],
    ['--out=', /^--out: expected a value; got ''\.$/],
    ['--out', /^--out: expected a value: --out=FILE\.$/],
    ['--help=1', /^--help: takes no value; got '1'\.$/],
    ['-', /^Unexpected argument '-': flags are written --name=value\.$/],
  ])('refuses %s', (argument, message) => {
    expect(() => parsed(argument)).toThrow(message);
  });

  it('does not take a flag for a value', () => {
    expect(() => parsed('--out', '--help')).toThrow('--out: expected a value: --out=FILE.');
  });
});

describe('flagsHelp', () => {
  it('shows how each flag is written', () => {
    expect(
      flagsHelp(table)
        .split('\n')
        .filter((line) => line.startsWith('  --')),
    ).toEqual([
      '  --out=FILE',
      '  --depth=N',
      '  --scale=X',
      '  --kind=KIND',
      '  --show[=WHAT]',
      '  --tag=TAG',
      '  --help',
    ]);
  });
});
