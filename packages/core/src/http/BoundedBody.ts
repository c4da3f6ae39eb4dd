/** Bounds a response's body, and each event of an event stream, so that nothing endless is buffered. Spec: LM-10. */
import { HttpRefused } from "./SameOrigin.ts"

export interface BodyLimits {
  readonly body: number
  /** Bytes of one event. */
  readonly event: number
  /** Bytes of a whole event stream; absent if it may stay open forever. */
  readonly stream?: number
}

const newline = 10
const carriageReturn = 13

/** Counts the bytes of the current event; an empty line ends it, with any of the three line endings. */
const makeEventCounter = (limit: number) => {
  let [bytes, atLineStart, last] = [0, true, 0]
  return (chunk: Uint8Array): boolean => {
    for (const byte of chunk) {
      bytes++
      if (byte === newline && last === carriageReturn) {
        last = byte
        continue
      }
      last = byte
      if (byte !== newline && byte !== carriageReturn) atLineStart = false
      else if (atLineStart) bytes = 0
      else atLineStart = true
      if (bytes > limit) return false
    }
    return true
  }
}

const tooLarge = (message: string) => new HttpRefused("answer_too_large", message)

const bounded = (limits: BodyLimits, events: boolean) => {
  const most = events ? limits.stream : limits.body
  const fits = events ? makeEventCounter(limits.event) : () => true
  let total = 0
  return new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      total += chunk.length
      if (most !== undefined && total > most) {
        controller.error(tooLarge(`the answer has more than ${most} bytes, which is the limit`))
      } else if (!fits(chunk)) {
        controller.error(tooLarge(`a message has more than ${limits.event} bytes, which is the limit`))
      } else controller.enqueue(chunk)
    }
  })
}

export const withBody = ({ headers, status, statusText }: Response, body: ReadableStream<Uint8Array>): Response =>
  new Response(body, { headers, status, statusText })

/** Whether the response is a stream of server-sent events. */
const isEventStream = ({ headers }: Response): boolean =>
  headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true

/** The response; its body fails with `HttpRefused` beyond its limits. */
export const boundedBody = (response: Response, limits: BodyLimits): Response =>
  response.body === null
    ? response
    : withBody(response, response.body.pipeThrough(bounded(limits, isEventStream(response))))
