/**
 * `fetch` for a server that may send anything: a body is ended when one message of it is too long. Event streams are
 * measured from one empty line to the next, so that a stream may stay open for ever. Spec: MC-4.
 */

/** The longest message of a server, over whatever transport. */
export const messageLimit = 10 * 1024 * 1024

const newline = 10
const carriageReturn = 13

/** Passes bytes on, and fails when a message has more than the limit. */
const bounded = (events: boolean) => {
  let [bytes, last] = [0, 0]
  return new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      for (const byte of events ? chunk : []) {
        bytes = byte === newline && last === newline ? 0 : bytes + 1
        if (byte !== carriageReturn) last = byte
        if (bytes > messageLimit) break
      }
      if (!events) bytes += chunk.length
      if (bytes > messageLimit) controller.error(new Error(`a message has more than ${messageLimit} bytes`))
      else controller.enqueue(chunk)
    }
  })
}

export const boundedFetch = async (url: string | URL, init?: RequestInit): Promise<Response> => {
  const response = await fetch(url, init)
  if (response.body === null) return response
  const { headers, status, statusText } = response
  const events = headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true
  return new Response(response.body.pipeThrough(bounded(events)), { headers, status, statusText })
}
