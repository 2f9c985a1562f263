/** @file The comment of a config review: posted once, then edited, and on no other pull request than its own. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commentOf, marker, postReview, readReview, type Target } from '../../scripts/postReview.js';
import { typescript } from '../loader.js';
import { FakeGithub } from './github.js';

const token = 'a-token';
const run = { headSha: 'abc', headRepositoryId: 7 };
const review = { number: 12, markdown: '### lm.Small\n\n`numHeads` 4 → 8' };
let github: FakeGithub;
let target: Target;
let directory: string;

beforeEach(async () => {
  github = new FakeGithub(token);
  github.pulls.set(12, { head: { sha: 'abc', repo: { id: 7 } } });
  const api = await github.start();
  target = { api, repository: 'someone/luthier', token, author: 'github-actions[bot]' };
  directory = mkdtempSync(join(tmpdir(), 'luthier-review-'));
});

afterEach(async () => {
  await github.stop();
  rmSync(directory, { recursive: true });
});

function comment(id: number, login: string, body: string) {
  return { id, body, user: { login } };
}

const bodies = () => github.comments.get(12)!.map(({ body }) => body);

describe('postReview', () => {
  it('posts one comment, and edits it from then on', async () => {
    expect(await postReview(review, run, target)).toBe('posted');
    expect(bodies()).toEqual([`${marker}\n${review.markdown}\n`]);
    expect(await postReview({ ...review, markdown: 'nothing changes' }, run, target)).toBe('updated');
    expect(bodies()).toEqual([`${marker}\nnothing changes\n`]);
    expect(await postReview({ ...review, markdown: 'nothing changes' }, run, target)).toBe('unchanged');
    expect(github.requests.filter((each) => !each.startsWith('GET'))).toEqual([
      'POST /repos/someone/luthier/issues/12/comments',
      'PATCH /repos/someone/luthier/issues/comments/1000',
    ]);
  });

  it('finds its comment behind many others', async () => {
    const others = Array.from({ length: 230 }, (_, i) => comment(i, 'someone', 'I see.'));
    github.comments.set(12, [...others, comment(999, target.author, `${marker}\nold\n`)]);
    expect(await postReview(review, run, target)).toBe('updated');
    expect(bodies().at(-1)).toBe(commentOf(review.markdown));
    expect(bodies()).toHaveLength(231);
  });

  it('leaves comments alone that others wrote, and own ones that only quote the marker', async () => {
    const others = [comment(1, 'mallory', `${marker}\nmine`), comment(2, target.author, `> ${marker}`)];
    github.comments.set(12, others);
    expect(await postReview(review, run, target)).toBe('posted');
    expect(bodies()).toEqual([`${marker}\nmine`, `> ${marker}`, commentOf(review.markdown)]);
  });

  it('refuses a pull request that the run was not for', async () => {
    github.pulls.set(13, { head: { sha: 'abc', repo: { id: 8 } } });
    await expect(postReview({ ...review, number: 13 }, run, target)).rejects.toThrow(
      "The review names pull request 13, but was made in another repository than that one's.",
    );
    expect(github.requests).toEqual(['GET /repos/someone/luthier/pulls/13']);
  });

  it('says nothing of commits that are no longer the last', async () => {
    expect(await postReview(review, { ...run, headSha: 'older' }, target)).toBe('outdated');
    expect(github.comments.size).toBe(0);
  });

  it('takes a fork that is gone', async () => {
    github.pulls.set(12, { head: { sha: 'abc', repo: null } });
    expect(await postReview(review, { ...run, headRepositoryId: null }, target)).toBe('posted');
  });

  it('tells what GitHub refuses', async () => {
    await expect(postReview(review, run, { ...target, token: 'another' })).rejects.toThrow(
      'GET pulls/12: GitHub answered 401: {"message":"Bad credentials"}',
    );
    await expect(postReview({ ...review, number: 99 }, run, target)).rejects.toThrow(
      'GET pulls/99: GitHub answered 404: {"message":"Not Found"}',
    );
  });
});

describe('commentOf', () => {
  it('has one marker, at the beginning', () => {
    expect(commentOf(`a ${marker} b\n\n`)).toBe(`${marker}\na  b\n`);
  });

  it('cuts what GitHub would not take, outside of code', () => {
    const long = commentOf(`\`\`\`\n${'a line of code\n'.repeat(10_000)}\`\`\`\n`);
    expect(long.length).toBeLessThan(65_536);
    expect(long).toMatch(
      /\na line of code\n```\n\nThe rest is too long for a comment: the artifact of the workflow has all of it\.\n$/,
    );
  });
});

describe('readReview', () => {
  function write(number: string, markdown = 'text'): void {
    writeFileSync(join(directory, 'number'), number);
    writeFileSync(join(directory, 'comment.md'), markdown);
  }

  it('reads the number and the text', () => {
    write('12\n', 'a\n');
    expect(readReview(directory)).toEqual({ number: 12, markdown: 'a\n' });
  });

  it.each(['', '0', '-1', '1e3', '12/../13', '12\n13', '$(id)', '99999999999'])(
    'refuses the number %j',
    (number) => {
      write(number);
      expect(() => readReview(directory)).toThrow(
        `The review is of no pull request: its number is ${JSON.stringify(number)}.`,
      );
    },
  );

  it('follows no links, and reads nothing endless', () => {
    write('12');
    rmSync(join(directory, 'comment.md'));
    symlinkSync('/etc/hostname', join(directory, 'comment.md'));
    expect(() => readReview(directory)).toThrow(`${join(directory, 'comment.md')} is no plain file.`);
    rmSync(join(directory, 'comment.md'));
    write('12', 'x'.repeat(1_000_001));
    expect(() => readReview(directory)).toThrow('has 1000001 bytes: too long for a review.');
  });
});

describe('the script', () => {
  function start(env: Readonly<Record<string, string>>): Promise<{ code: number | null; output: string }> {
    const script = fileURLToPath(new URL('../../scripts/postReview.ts', import.meta.url));
    const child = spawn(process.execPath, ['--import', typescript, script, directory], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
  }

  it("posts with what GitHub's runner says, and fails where that says nothing", async () => {
    writeFileSync(join(directory, 'number'), '12\n');
    writeFileSync(join(directory, 'comment.md'), review.markdown);
    const event = join(directory, 'event.json');
    writeFileSync(event, JSON.stringify({ workflow_run: { head_sha: 'abc', head_repository: { id: 7 } } }));
    const env = {
      GITHUB_API_URL: target.api,
      GITHUB_REPOSITORY: target.repository,
      GITHUB_EVENT_PATH: event,
      GITHUB_TOKEN: token,
    };
    expect(await start(env)).toEqual({ code: 0, output: 'Pull request 12: posted.\n' });
    expect(bodies()).toEqual([commentOf(review.markdown)]);
    expect(await start({ ...env, GITHUB_TOKEN: '' })).toEqual({
      code: 1,
      output: 'The environment has no GITHUB_TOKEN.\n',
    });
    writeFileSync(event, '{}');
    expect(await start(env)).toEqual({ code: 1, output: 'This is for the event workflow_run.\n' });
  });
});
