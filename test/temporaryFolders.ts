/** @file One folder for all that tests and their processes write to the system's temporary one, gone when they end. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';

/** Once before the first test, in the process that starts those of the tests; what it returns runs after the last. */
export default function temporaryFolders(): () => void {
  const system = realpathSync(tmpdir());
  const folder = mkdtempSync(join(system, 'luthier-tests-'));
  // What tsx has translated before is for all runs.
  const translated = `tsx-${process.geteuid?.() ?? userInfo().username}`;
  mkdirSync(join(system, translated), { recursive: true });
  symlinkSync(join(system, translated), join(folder, translated), 'junction');
  process.env.TMPDIR = folder;
  process.env.TEMP = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
