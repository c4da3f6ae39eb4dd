/** Encodes server-sent events. Pure. Spec: SL-221, SL-223 in specs/shell.md. */

/** One event. Without `data` a reader gets nothing, but remembers the `id`. */
export interface Frame {
  /** What a reader sends as `Last-Event-ID` when it connects again; a number has no line break. */
  readonly id: number
  /** The type that a page listens to; `message` by default. */
  readonly event?: string
  /** One line, such as JSON. */
  readonly data?: string
}

export const contentType = "text/event-stream; charset=utf-8"

export const frame = ({ data, event, id }: Frame): string =>
  `${event === undefined ? "" : `event: ${event}\n`}id: ${id}\n${data === undefined ? "" : `data: ${data}\n`}\n`

/** The start of a stream: the headers leave with its first bytes. `retry`: the reader's pause before it connects again. */
export const opening = (retry: number): string => `retry: ${retry}\n: open\n\n`

/** Shows that the connection lives, and moves what the reader remembers. */
export const heartbeat = (id: number): string => `: alive\n${frame({ id })}`

/** Joins frames to texts of at most `length` code units; a longer frame stays alone. Fewer writes, each of bounded size. */
export const joined = (frames: ReadonlyArray<string>, length = 65_536): ReadonlyArray<string> => {
  const texts: Array<string> = []
  for (const each of frames) {
    const last = texts.at(-1)
    if (last === undefined || last.length + each.length > length) texts.push(each)
    else texts[texts.length - 1] = last + each
  }
  return texts
}
