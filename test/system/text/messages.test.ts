/** @file Words of commands in messages. */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { shellWord } from '../../../src/system/text/index.js';

test('a word of a command reaches the program as it is, quoted where a shell would change it', () => {
  expect(['lm.Small', 'with space.a b.Tiny', "it's $HOME"].map(shellWord)).toEqual([
    'lm.Small',
    "'with space.a b.Tiny'",
    "'it'\\''s $HOME'",
  ]);
  const words = ["it's", '$HOME `ls` "x" \\', 'a;b', '*', '', 'lm.Pair/small'];
  const { stdout } = spawnSync('sh', ['-c', `printf '%s\\n' ${words.map(shellWord).join(' ')}`], {
    encoding: 'utf8',
  });
  expect(stdout.split('\n').slice(0, -1)).toEqual(words);
});
