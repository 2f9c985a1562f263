/** @file As much of GitHub's REST API as posting a review takes, on the loopback interface. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface StoredComment {
  readonly id: number;
  body: string;
  readonly user: { readonly login: string };
}

export interface StoredPull {
  readonly number: number;
  readonly state: 'open' | 'closed';
  readonly head: { label: string; sha: string; repo: { id: number } | null };
  readonly base: { ref: string };
  labels: { name: string }[];
}

/** A commit status as it is set. */
export interface StoredStatus {
  readonly state: string;
  readonly context: string;
  readonly description: string;
  readonly target_url: string;
}

interface Answer {
  readonly status: number;
  readonly answer: unknown;
}

/** A repository with pull requests, their comments, and statuses of commits. */
export class FakeGithub {
  readonly pulls: StoredPull[] = [];
  readonly comments = new Map<number, StoredComment[]>();
  readonly statuses = new Map<string, StoredStatus[]>();
  /** `METHOD path`, in the order in which they came. */
  readonly requests: string[] = [];
  /** Requests with a text that are refused, as `METHOD path`. */
  refused: RegExp | undefined;
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

  private answer(incoming: IncomingMessage, body: string): Answer {
    const url = new URL(incoming.url!, 'http://github');
    const path = url.pathname.replace('/repos/someone/luthier/', '');
    this.requests.push(`${incoming.method} ${path}${url.search}`);
    if (incoming.headers.authorization !== `Bearer ${this.token}`) {
      return { status: 401, answer: { message: 'Bad credentials' } };
    }
    if (body !== '' && this.refused?.test(`${incoming.method} ${path}`))
      return { status: 422, answer: { message: 'Validation Failed' } };
    const [, what, key] =
      /^(pulls$|statuses\/|issues\/comments\/|issues\/(?=\d+\/comments$))(\w*)/.exec(path) ?? [];
    switch (`${incoming.method} ${what}`) {
      case 'GET pulls':
        return ok(pageOf(this.pullsOf(url.searchParams), url.searchParams));
      case 'GET issues/':
        return ok(pageOf(this.comments.get(Number(key)) ?? [], url.searchParams));
      case 'POST issues/':
        return this.add(Number(key), body);
      case 'PATCH issues/comments/':
        return this.edit(Number(key), body);
      case 'POST statuses/':
        this.statuses.set(key!, [...(this.statuses.get(key!) ?? []), JSON.parse(body) as StoredStatus]);
        return ok({});
      default:
        return { status: 404, answer: { message: 'Not Found' } };
    }
  }

  private pullsOf(query: URLSearchParams): StoredPull[] {
    return this.pulls.filter(
      ({ state, head }) => state === query.get('state') && head.label === query.get('head'),
    );
  }

  private add(number: number, body: string): Answer {
    const comments = this.comments.get(number) ?? [];
    const comment = {
      id: 1000 + [...this.comments.values()].flat().length,
      body: textIn(body),
      user: { login: 'github-actions[bot]' },
    };
    this.comments.set(number, [...comments, comment]);
    return ok(comment);
  }

  private edit(id: number, body: string): Answer {
    const comment = [...this.comments.values()].flat().find((each) => each.id === id)!;
    comment.body = textIn(body);
    return ok(comment);
  }
}

function ok(answer: unknown): Answer {
  return { status: 200, answer };
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
