/** @file Connections of a server: errors of the HTTP parser, writes to closed connections, and closing all of them. */
import { type Server as HttpServer, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { HttpError } from './httpError.js';

/** Time that a client may take to send the head of a request, and the whole of it. */
export const RECEIVE_MS = { head: 20_000, whole: 30_000 };

/** Errors of Node's HTTP parser by code; all others are requests that are no HTTP. */
const parserErrors: Readonly<Record<string, readonly [status: number, message: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers are too large: expected 16 KiB at most.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'The extensions of a chunk are too large: expected 16 KiB at most.'],
  ERR_HTTP_REQUEST_TIMEOUT: [
    408,
    `The request was not complete within ${RECEIVE_MS.whole / 1000} s, or its headers within ${RECEIVE_MS.head / 1000} s.`,
  ],
};

/** An error of the parser as clients may see it. */
function parserError({ code = '', message }: NodeJS.ErrnoException): HttpError {
  const known = Object.hasOwn(parserErrors, code) ? parserErrors[code] : undefined;
  const [status, explanation] = known ?? [
    400,
    `The request: expected HTTP/1.1: ${message.replace(/^Parse Error: /, '')}.`,
  ];
  return new HttpError(status, explanation);
}

/** Time in which a client that continues sending can read why it was refused: closing at once may take that from it. */
const LINGER_MS = 1000;

/** Answers on a connection whose request has no response object, and closes it. */
function refuse(connection: Duplex, { status, body }: HttpError): void {
  const text = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'connection: close',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
  ];
  connection.end(`${head.join('\r\n')}\r\n\r\n${text}`);
  setTimeout(() => connection.destroy(), LINGER_MS).unref();
}

/** The connections of a server that are open. */
export class Connections {
  /** With the responses that are not whole, in the order of their requests. */
  readonly #open = new Map<Duplex, Set<ServerResponse>>();
  readonly #refused = new WeakSet<Duplex>();
  #isDraining = false;

  /** @param writeMs time after which an answer of which nothing more is read is given up */
  constructor(
    private readonly server: HttpServer,
    private readonly writeMs: number,
  ) {
    server.timeout = writeMs;
    server.on('connection', (socket: Socket) => {
      this.#open.set(socket, new Set());
      socket.once('close', () => this.#open.delete(socket));
    });
    server.prependListener('request', ({ socket }, response) => this.#watch(socket, response));
    server.on('clientError', (error, socket) => this.#parserFailed(error, socket));
    server.on('checkExpectation', ({ headers: { expect } }, response) => {
      const { status, body } = new HttpError(417, `The header Expect: expected 100-continue, got ${expect}.`);
      response.statusCode = status;
      response.setHeader('content-type', 'application/json').setHeader('connection', 'close');
      response.end(JSON.stringify(body));
    });
    server.on('connect', ({ url }, socket) => {
      socket.on('error', () => socket.destroy());
      refuse(
        socket,
        new HttpError(405, `This server is not a proxy: CONNECT ${url?.slice(0, 100)} is not served.`),
      );
    });
  }

  /** Closes those that wait for no answer, now and as answers end, and those that have sent nothing, as browsers open ahead. */
  drain(): void {
    this.#isDraining = true;
    this.server.closeIdleConnections();
    for (const connection of this.#open.keys())
      if ((connection as Socket).bytesRead === 0) connection.destroy();
  }

  closeAll(): void {
    for (const connection of this.#open.keys()) connection.destroy();
  }

  #watch(socket: Socket, response: ServerResponse): void {
    const responses = this.#open.get(socket);
    responses?.add(response);
    response.once('close', () => {
      responses?.delete(response);
      if (this.#isDraining) setImmediate(() => this.server.closeIdleConnections());
    });
    // Nothing has moved on the connection for a while: for it waits for the model, or its client doesn't read.
    response.on('timeout', () => {
      if (response.writableEnded || response.writableLength > 0) socket.destroy();
      else socket.setTimeout(this.writeMs);
    });
  }

  /** As Node does by default, the error takes the place of the first response that has not begun. */
  #parserFailed(error: Error, connection: Duplex): void {
    if (this.#refused.has(connection)) return;
    const [first] = this.#open.get(connection) ?? [];
    if (connection.writable && first?.headersSent !== true) {
      this.#refused.add(connection);
      refuse(connection, parserError(error));
    } else connection.destroy();
  }
}
