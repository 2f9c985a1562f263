/** @file As much of GitHub's REST API as posting a review takes, on the loopback interface. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface StoredComment {
  readonly id: number;
  body: string;
  readonly user: { readonly login: string };
}

/** A repository with pull requests and their comments. */
export class FakeGithub {
  readonly pulls = new Map<number, { head: { sha: string; repo: { id: number } | null } }>();
  readonly comments = new Map<number, StoredComment[]>();
  /** `METHOD path`, in the order in which they came. */
  readonly requests: string[] = [];
  private readonly server: Server;

  constructor(private readonly token: string) {
    this.server = createServer(async (incoming, response) => {
      const { status, answer } = this.answer(incoming, await textOf(incoming));
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer));
    });
  }

  /** @returns its address. */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private answer(incoming: IncomingMessage, body: string): { status: number; answer: unknown } {
    const url = new URL(incoming.url!, 'http://github');
    this.requests.push(`${incoming.method} ${url.pathname}${url.search}`);
    if (incoming.headers.authorization !== `Bearer ${this.token}`) {
      return { status: 401, answer: { message: 'Bad credentials' } };
    }
    const path = url.pathname.replace('/repos/someone/luthier/', '');
    const pull = /^pulls\/(\d+)$/.exec(path);
    if (pull) return found(this.pulls.get(Number(pull[1])));
    const edited = /^issues\/comments\/(\d+)$/.exec(path);
    if (edited) return this.edit(Number(edited[1]), body);
    const number = Number(/^issues\/(\d+)\/comments$/.exec(path)?.[1]);
    const comments = this.comments.get(number) ?? [];
    if (incoming.method === 'GET') return { status: 200, answer: pageOf(comments, url.searchParams) };
    const comment = {
      id: 1000 + comments.length,
      body: textIn(body),
      user: { login: 'github-actions[bot]' },
    };
    this.comments.set(number, [...comments, comment]);
    return { status: 201, answer: comment };
  }

  private edit(id: number, body: string): { status: number; answer: unknown } {
    const comment = [...this.comments.values()].flat().find((each) => each.id === id);
    if (comment) comment.body = textIn(body);
    return found(comment);
  }
}

function found(answer: unknown): { status: number; answer: unknown } {
  return answer === undefined ? { status: 404, answer: { message: 'Not Found' } } : { status: 200, answer };
}

function pageOf<T>(items: readonly T[], query: URLSearchParams): T[] {
  const size = Number(query.get('per_page'));
  const first = (Number(query.get('page')) - 1) * size;
  return items.slice(first, first + size);
}

function textIn(body: string): string {
  return (JSON.parse(body) as { body: string }).body;
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of incoming) text += chunk;
  return text;
}
