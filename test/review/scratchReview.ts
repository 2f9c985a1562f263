/** @file Reviews of edits in a scratch clone, which is reset before each. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'vitest';
import { compareVersions, type VersionsRequest } from '../../src/review/compareVersions.js';
import { plain } from '../../src/system/text/terminalOutput.js';
import { reportOf } from '../../src/tools/diff.js';
import { repositoryOf, type TestRepository } from './repository.js';

/** What is edited: a file's new text, or what becomes of its old one. */
export type Edits = Readonly<Record<string, string | ((text: string) => string)>>;

/** Puts `text` in the place of another one, which must be there. */
export function instead(old: string, text: string): (file: string) => string {
  return (file) => {
    expect(file).toContain(old);
    return file.replace(old, () => text);
  };
}

/** A clone in which edits are reviewed one after the other. */
export class ScratchReview {
  readonly repository: TestRepository;

  constructor(files: Readonly<Record<string, string>>) {
    this.repository = repositoryOf(files);
  }

  /** Has the base hold what was done to the folder. */
  commit(): void {
    const { git } = this.repository;
    git('add', '.');
    git('commit', '--quiet', '--message=more');
    git('branch', '--force', 'main');
  }

  /** The report on edits, and on what `act` does besides, without what differs from run to run; `exit 1` where it fails. */
  async told(edits: Edits, request: Partial<VersionsRequest> = {}, act = () => {}): Promise<string> {
    const { folder, git, write } = this.repository;
    git('checkout', '--quiet', '--force', 'change');
    git('reset', '--quiet', '--hard', 'main');
    git('clean', '--quiet', '--force', '-d');
    const texts = Object.entries(edits).map(([file, edit]): [string, string] => [
      file,
      typeof edit === 'string' ? edit : edit(readFileSync(join(folder, file), 'utf8')),
    ]);
    write(Object.fromEntries(texts));
    act();
    // Answers that follow from files of the last moment are not kept: clocks of file systems may be behind.
    if (request.answers !== undefined) await setTimeout(100);
    const asked = { project: folder, base: 'main', exact: false, name: undefined, changes: [] };
    const limits = { seconds: 120, gigabytes: 4 };
    const { text, exitCode } = reportOf(await compareVersions({ ...asked, limits, ...request }));
    const told = text(plain)
      .replace(/\n.* → working tree$/m, '')
      .replace(/\n\nNote: For equal configs, .*/, '')
      .replaceAll(folder, '/project')
      .replace(/[0-9a-f]{7} of \d{4}-\d\d-\d\d/g, 'abc1234 of DATE')
      .replace(/(luthier\/src\/[\w/]+\.ts):\d+/g, '$1:N');
    return exitCode === 0 ? told : `exit ${exitCode}: ${told}`;
  }
}
