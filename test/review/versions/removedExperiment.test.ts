/** @file Description of removed experiments: the commit that they were changed by, and where their name leads now. */
import { realpathSync } from 'node:fs';
import { expect, test } from 'vitest';
import { findBase, repositoryOf as gitOf } from '../../../src/review/versions/gitQueries.js';
import { descriptionOf } from '../../../src/review/versions/removedExperiment.js';
import { Sources } from '../../../src/review/versions/sources.js';
import { treeAt } from '../../../src/review/versions/versionTree.js';
import { addWorktree } from '../../../src/review/versions/worktree.js';
import { repositoryOf } from '../repository.js';

const base = `import { Experiment } from 'luthier';\nexport abstract class Family extends Experiment {}\n`;
const gone = (...names: string[]) =>
  `import { Family } from './family.js';\n${names.map((name) => `/** It was ${name}. */\nexport class ${name} extends Family {}\n`).join('')}`;

test('a name leads to the one experiment that ends in it, unless there is still a file of that name', () => {
  const user = repositoryOf({
    'experiments/family.ts': base,
    'experiments/a.ts': gone('One', 'Two', 'Three'),
    'experiments/b.ts': gone('Four'),
  });
  user.write({
    'experiments/b.ts': gone(),
    'experiments/deep/a.ts': gone('One', 'Two').replace('./', '../'),
    'experiments/deep/b.ts': gone('Four').replace('./', '../'),
    'experiments/other/a.ts': gone('Two').replace('./', '../'),
  });
  user.git('rm', '--quiet', '--cached', 'experiments/a.ts');
  user.git('clean', '--quiet', '--force', 'experiments/a.ts');
  const folder = realpathSync(user.folder);
  const repository = gitOf(folder);
  const commit = findBase(repository, 'main', false);
  const worktree = addWorktree(repository, commit.commit, folder);
  try {
    const [old, now] = [worktree.root, folder].map(
      (root) => new Sources(treeAt(root, { root: folder, project: folder }), new Set()),
    ) as [Sources, Sources];
    const described = (name: string) => descriptionOf(name, { old, now }, repository, commit);
    expect(described('a.One')).toEqual({
      ...{ base: 'Family', place: 'experiments/a.ts:3', description: 'It was One.', leadsTo: 'deep.a.One' },
      lastCommit: expect.stringMatching(/^[0-9a-f]{7} of \d{4}-\d\d-\d\d: base$/),
    });
    expect(['a.Two', 'a.Three', 'b.Four'].map((name) => described(name).leadsTo)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(described('b.Four').place).toBe('experiments/b.ts:3');
  } finally {
    worktree.remove();
  }
});
