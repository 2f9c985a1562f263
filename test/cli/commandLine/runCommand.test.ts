/** @file Errors as commands end with them. */
import { describe, expect, it } from 'vitest';
import { describeError } from '../../../src/cli/commandLine/runCommand.js';
import { diskFullError } from '../../../src/compiler/native/toolchain/interrupted.js';
import { NativeEngineError } from '../../../src/compiler/program/tensors.js';
import { ConfigError } from '../../../src/hparams/index.js';
import { ExperimentLoadError } from '../../../src/registry/index.js';
import { UsageError } from '../../../src/system/text/index.js';

describe('describeError', () => {
  it('prints only the message of a user error', () => {
    expect(describeError(new UsageError('a flag is wrong'))).toEqual({ text: 'a flag is wrong', code: 2 });
    expect(describeError(new ConfigError('too small', { path: 'a.b' }))).toMatchObject({ code: 2 });
    const full = diskFullError('train_step', '/cache');
    expect(describeError(full)).toEqual({ text: full.message, code: 1 });
    const failed = new NativeEngineError('no compiler');
    expect(describeError(failed)).toEqual({ text: 'no compiler', code: 1 });
  });

  it('keeps the stack of other errors, and of their causes', () => {
    const error = new TypeError('outer', { cause: new RangeError('inner') });
    const { text, code } = describeError(error);
    expect(code).toBe(1);
    expect(text).toMatch(/^TypeError: outer\n {4}at [\s\S]*\nRangeError: inner\n {4}at /);
  });

  it('prints the own error of a file that fails to load', () => {
    const cause = new ConfigError('too small');
    expect(describeError(new ExperimentLoadError('lm.ts failed to load.', { cause }))).toEqual({
      text: 'lm.ts failed to load.\ntoo small',
      code: 2,
    });
  });

  it('tells a module that Node cannot find in one line', () => {
    const error = Object.assign(new Error("Cannot find module './gone.js'\nRequire stack:\n- /lm.ts"), {
      code: 'MODULE_NOT_FOUND',
    });
    const cause = Object.assign(error, { name: 'Error' });
    expect(describeError(new ExperimentLoadError('lm.ts failed to load.', { cause }))).toEqual({
      text: "lm.ts failed to load.\nCannot find module './gone.js'",
      code: 1,
    });
  });

  it('accepts any thrown value', () => {
    expect(describeError('a text')).toEqual({ text: 'a text', code: 1 });
  });
});
