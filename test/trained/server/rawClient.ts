/** @file A client by a bare socket, which sends and reads what and when it is told. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';

/** A POST of JSON as it goes over the wire. */
export function posted(path: string, body: string | object, headers: readonly string[] = []): string {
  const sent = typeof body === 'string' ? body : JSON.stringify(body);
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: localhost',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(sent)}`,
    ...headers,
  ];
  return `${head.join('\r\n')}\r\n\r\n${sent}`;
}

/** Opens a connection and sends a text. Connections that are reset are closed. */
export async function opened(url: string, sent = ''): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname.replace(/^\[(.*)\]$/, '$1'));
  socket.on('error', () => socket.destroy());
  await once(socket, 'connect');
  if (sent !== '') socket.write(sent);
  return socket;
}

/** Waits until a connection is closed, by a reset or otherwise. What comes on it is read. */
export async function closed(socket: Socket): Promise<void> {
  socket.resume();
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
}

/** What a server answers to a text, until it closes the connection. */
export async function answered(
  url: string,
  sent: string,
): Promise<{ status: number; head: string; body: string }> {
  const all = await text(await opened(url, sent));
  const [head = '', ...rest] = all.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), head, body: rest.join('\r\n\r\n') };
}
