/**
 * @file Runs the programs of a page and puts what they print where the page shows what they print:
 *
 *     npx tsx scripts/refreshPage.ts docs/architecture/machine-code.md
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, runPage } from '../test/docs/pages.js';

for (const path of process.argv.slice(2)) {
  const file = join(root, path);
  let page = readFileSync(file, 'utf8');
  let from = 0;
  for (const { kind, shown, printed, status } of await runPage(path)) {
    if (kind === 'program' && status !== 0) throw new Error(`${path}: a program failed:\n${printed}`);
    if (kind !== 'program' || shown === undefined) continue;
    const at = page.indexOf(`\`\`\`text\n${shown}\`\`\``, from) + '```text\n'.length;
    page = page.slice(0, at) + printed + page.slice(at + shown.length);
    from = at + printed.length;
  }
  writeFileSync(file, page);
}
