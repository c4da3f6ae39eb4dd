/**
 * Writes a session's messages as a document: Markdown, a self-contained HTML page, or one JSON message a line. Streams, so
 * that memory is bounded by the largest message and the list of prompts. With a redactor, every text is redacted before it
 * is written. Spec: FM-170..FM-177 in specs/formats.md.
 */
import { Effect, Schema, Stream } from "effect"
import { Message, Session } from "@daybook/log/domain/Message"
import type { Json, Redactor } from "@daybook/log/support/Redaction"
import { htmlOf, pageEnd, pageStart } from "./Html.ts"
import { markdownEnd, markdownOf, markdownStart } from "./Markdown.ts"
import { makeTotals, type Totals } from "./Text.ts"

// Redacts what a document shows; a message that is no message after redaction ends the document.

/** Secrets could not be removed from a session. The document is incomplete and must not be used. */
export class RedactionFailed extends Schema.TaggedError<RedactionFailed>("@daybook/formats/RedactionFailed")(
  "RedactionFailed",
  { what: Schema.String }
) {
  override get message() {
    return `secrets could not be removed from ${this.what}; nothing was written`
  }
}

const redacted = <A, I>(schema: Schema.Schema<A, I>, what: (value: A) => string) => {
  const encode = Schema.encodeSync(schema)
  const decode = Schema.decodeUnknownSync(schema)
  return (redactor: Redactor, value: A): Effect.Effect<A, RedactionFailed> =>
    Effect.try({
      try: () => {
        const plain: Json = JSON.parse(JSON.stringify(encode(value)))
        return decode(redactor.value(plain))
      },
      catch: () => new RedactionFailed({ what: what(value) })
    })
}

const messageWithout = redacted(Message, ({ id }) => `message ${id}`)

const redactedMessage = (redactor: Redactor) => (message: Message) => messageWithout(redactor, message)

const redactedSession = redacted(Session, ({ id }) => `session ${id}`)

export interface DocumentOptions {
  readonly redactor?: Redactor | undefined
}

type Text<E, R> = Stream.Stream<string, E | RedactionFailed, R>

/** Writes the messages with the functions of a format. */
const written =
  (format: {
    readonly start: (session: Session) => string
    readonly message: (message: Message, number: number) => string
    readonly end: (session: Session, totals: Totals) => string
  }) =>
  <E, R>(session: Session, messages: Stream.Stream<Message, E, R>, { redactor }: DocumentOptions = {}): Text<E, R> =>
    Stream.unwrap(
      Effect.map(redactor === undefined ? Effect.succeed(session) : redactedSession(redactor, session), (head) => {
        const totals = makeTotals()
        const clean = redactor === undefined ? messages : Stream.mapEffect(messages, redactedMessage(redactor))
        const body = Stream.map(clean, (message) => {
          totals.add(message)
          return format.message(message, totals.value().prompts.length)
        })
        return Stream.make(format.start(head)).pipe(
          Stream.concat(body),
          Stream.concat(Stream.sync(() => format.end(head, totals.value())))
        )
      })
    )

/** Markdown for people: prompts as quotes, answers as they are, tool calls and results in fences (FM-172). */
export const markdown = written({ start: markdownStart, message: markdownOf, end: markdownEnd })

/**
 * A page that needs nothing else: styles and pictures are part of it, and it runs no script. Whatever the messages hold,
 * they are shown as text or as Markdown without raw HTML (FM-174).
 */
export const html = written({ start: pageStart, message: htmlOf, end: pageEnd })

const encode = Schema.encodeSync(Message)

/** One message a line, as the public schema `Message` encodes it (FM-171). */
export const jsonl = written({
  start: () => "",
  message: (message) => `${JSON.stringify(encode(message))}\n`,
  end: () => ""
})
