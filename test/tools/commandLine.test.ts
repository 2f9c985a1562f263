/** @file The command `luthier`: its help, its errors, its formats, its exit codes. */
import { spawnSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { modes } from '../../src/cli/commandLine/modes.js';
import { writeText } from '../../src/system/index.js';
import { paintFor, plain } from '../../src/system/text/terminalOutput.js';
import { commandHelp } from '../../src/tools/command.js';
import { commands } from '../../src/tools/commands.js';
import { oneProcess, runLuthier, temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';

const names = Object.keys(commands);
const luthier = oneProcess('src/tools/commandLine.ts');

describe('luthier', () => {
  it('lists its commands, and says that one is missing where there is none', async () => {
    const [asked, bare] = await Promise.all([runLuthier(['--help']), runLuthier([])]);
    expect(asked).toMatchObject({ code: 0, stderr: '' });
    expect(asked.stdout).toMatch(/^Runs experiments, shows their configs, and reviews changes to them\.\n/);
    const listed = asked.stdout.split('\n').flatMap((line) => /^ {2}([a-z-]+) {2,}\S/.exec(line)?.[1] ?? []);
    expect(listed).toEqual(names);
    expect(bare).toEqual({ ...asked, code: 2 });
  });

  it('suggests the command that was meant', async () => {
    expect(await luthier(['dmup', 'tiny.Tiny'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: `luthier has no command 'dmup'. Did you mean 'dump'? The commands are: ${[...modes, ...names].join(', ')}.\n`,
    });
    expect((await luthier(['constructor'])).stderr).toMatch(/^luthier has no command 'constructor'\./);
  });

  it('runs experiments: a mode is a command, and of two modes the last one counts', async () => {
    const flags = ['--exp=tiny.Tiny', '--sweep', 'modelDims=8,16'];
    const refused = (mode: string) => ({
      code: 2,
      stderr: expect.stringContaining(`--mode=${mode} do not go together`),
    });
    expect(await luthier(['eval', ...flags])).toMatchObject(refused('eval'));
    expect(await luthier(['train', ...flags, '--mode=decode'])).toMatchObject(refused('decode'));
    const { code, stdout } = await luthier(['train', '--help']);
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining('npx luthier train --exp=lm.Small --job_log_dir=out/lm_small\n'),
    ]);
  });

  longTest('runs in any directory, by a link to it, as package managers make one', () => {
    const directory = temporaryDirectory();
    const link = join(directory, 'luthier');
    symlinkSync(fileURLToPath(new URL('../../src/tools/luthier.js', import.meta.url)), link);
    const { status, stdout, stderr } = spawnSync(link, ['dump', 'lm.Small', '--format=yaml'], {
      cwd: directory,
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^format: luthier-config\n/);
  });
});

describe('commands', () => {
  it.each(names)('%s tells its usage, flags and exit codes', async (name) => {
    const { about, load } = commands[name]!;
    const command = await load();
    const help = await commandHelp(name, about, command);
    expect(help).toContain(`  npx luthier ${name}`);
    for (const flag of [...Object.keys(command.flags), 'format', 'help'])
      expect(help).toContain(`  --${flag}`);
    expect(help.includes('--set=PATH=VALUE')).toBe(command.changes);
    expect(help).toMatch(/Exit codes: 0; /);
    expect(about).toMatch(/^[A-Z].*\.$/);
  });

  it('tell how they are used: by a flag, and where an argument is missing or too many', async () => {
    const [help, none, many] = await Promise.all([
      luthier(['dump', '--help']),
      luthier(['dump']),
      luthier(['dump', 'a', 'b']),
    ]);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toContain('\n  npx luthier dump EXP [flags]\n');
    const rest = 'luthier dump --help explains more.\n';
    expect(none).toMatchObject({ code: 2, stderr: `luthier dump takes EXP; got none. ${rest}` });
    expect(many).toMatchObject({ code: 2, stderr: `luthier dump takes EXP; got 'a' 'b'. ${rest}` });
  });

  it('refuse flags and formats that they have not, and name the nearest', async () => {
    const [flag, format] = await Promise.all([
      luthier(['dump', 'tiny.Tiny', '--histroy']),
      luthier(['graph', 'tiny.Tiny', '--format=yaml']),
    ]);
    expect(flag.code).toBe(2);
    expect(flag.stderr).toMatch(
      /^Unknown flag --histroy\. Did you mean '--history'\? The flags are: --history, /,
    );
    expect(format).toMatchObject({
      code: 2,
      stderr: "--format: expected one of text, json; got 'yaml'.\n",
    });
  });

  it("tell what is wrong with an experiment: in a person's words, or with the stack of its own error", async () => {
    const [unknown, misspelt, failing] = await Promise.all([
      luthier(['dump', 'tiny.Tny']),
      luthier(['dump', 'misspelt.Misspelt']),
      luthier(['dump', 'failing.Any']),
    ]);
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain("Did you mean 'tiny.Tiny'?");
    expect(misspelt.code).toBe(2);
    expect(misspelt.stderr).toMatch(/^Misspelt has no constant 'sise'\. Did you mean 'size'\?/);
    expect(failing.code).toBe(1);
    expect(failing.stderr).toMatch(
      /^Experiment 'failing\.Any': experiments\/failing\.ts failed to load\.\nError: this module fails while it loads\n {4}at /,
    );
  });

  it('warn beside the report, not in it', async () => {
    const { stdout, stderr } = await luthier(['dump', 'fiddled.Fiddled', '--set=spare=1', '--format=json']);
    expect(stderr).toMatch(/^--set spare=1: Fiddled never reads the constant spare/);
    expect(JSON.parse(stdout)).toMatchObject({ format: 'luthier-config' });
  });
});

describe('colours', () => {
  const stream = (isTTY: boolean) => ({ isTTY }) as NodeJS.WriteStream;

  it('are for terminals', () => {
    expect(paintFor(stream(false))).toBe(plain);
    let written = '';
    writeText(paintFor(stream(true))('bold', 'x\u001b[2J'), {
      write: (text) => {
        written += text;
      },
    });
    expect(written).toBe('\u001b[1mx\\u001b[2J\u001b[22m');
  });

  it.each([
    ['NO_COLOR', '1'],
    ['TERM', 'dumb'],
  ])('are none with %s=%s', (name, value) => {
    const before = process.env[name];
    process.env[name] = value;
    try {
      expect(paintFor(stream(true))).toBe(plain);
    } finally {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    }
  });

  it('never reach a pipe', async () => {
    const { stdout } = await luthier(['dump', 'tiny.Tiny']);
    expect(stdout).toBe(stripVTControlCharacters(stdout));
  });
});
