/** @file The chat page, and the headers that keep it to itself. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A page as it is sent. */
export interface ChatPage {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

let read: ChatPage | undefined;

/** Hashes of the texts within elements of a name, as a policy has them. */
function hashesOf(html: string, element: string): string {
  const texts = html.matchAll(new RegExp(`<${element}>([\\s\\S]*?)</${element}>`, 'g'));
  return Array.from(
    texts,
    ([, text]) => `'sha256-${createHash('sha256').update(text!).digest('base64')}'`,
  ).join(' ');
}

/** The page. Its own script and style are all that runs, and this server is all that it reaches. */
export function chatPage(): ChatPage {
  if (read) return read;
  const html = readFileSync(new URL('./chatPage.html', import.meta.url), 'utf8');
  const policy = [
    "default-src 'none'",
    `script-src ${hashesOf(html, 'script')}`,
    `style-src ${hashesOf(html, 'style')}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  };
  read = { html, headers };
  return read;
}
