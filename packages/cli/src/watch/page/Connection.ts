/**
 * Follows the stream of events, also when the connection is lost or the server is started again: each event once, in order.
 * The browser connects again itself, with `Last-Event-ID`; this continues when it has given up. Spec: SL-221, SL-229 in specs/shell.md.
 */
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { isShellEvent, type ShellEvent } from "@daybook/shell/record/ShellList"

/**
 * `unreadable`: the server cannot read the log. `refused`: the token is no longer valid. `gone`: the session was removed. The
 * last two are not tried again.
 */
export type State = "reading" | "live" | "lost" | "full" | "unreadable" | "refused" | "gone"

interface Listener {
  readonly event: (event: ShellEvent) => void
  readonly state: (state: State) => void
  /** The log is another one: everything is sent again. */
  readonly reset: () => void
}

const pause = 1_000

/** The server encoded the event through its schema, and no other server is asked. */
const parse = (data: string): SessionEvent => JSON.parse(data)

export class Connection {
  readonly #listener: Listener
  readonly #token: string
  /** The last event, by the server's count. */
  #cursor: number | undefined

  constructor(token: string, listener: Listener) {
    this.#token = token
    this.#listener = listener
  }

  #address(): string {
    const query = new URLSearchParams({ token: this.#token })
    if (this.#cursor !== undefined) query.set("after", String(this.#cursor))
    return `events?${query}`
  }

  open(): void {
    const source = new EventSource(this.#address())
    const moved = (id: string): boolean => {
      const next = Number(id)
      const isNew = this.#cursor === undefined || next > this.#cursor
      if (isNew) this.#cursor = next
      return isNew
    }
    source.addEventListener("message", ({ data, lastEventId }: MessageEvent<string>) => {
      if (!moved(lastEventId)) return
      const event = parse(data)
      // A newer server, started after this page was loaded, may send other types too.
      if (isShellEvent(event)) this.#listener.event(event)
    })
    source.addEventListener("caught-up", ({ lastEventId }) => {
      moved(lastEventId)
      this.#listener.state("live")
    })
    source.addEventListener("error", () => {
      this.#listener.state("lost")
      if (source.readyState === EventSource.CLOSED) void this.#ask()
    })
  }

  /** Asks why the stream was refused, and opens it again if that can help. */
  async #ask(): Promise<void> {
    const status = await fetch(this.#address(), { method: "HEAD" }).then(
      (response) => response.status,
      () => 0
    )
    switch (status) {
      case 401:
        return this.#listener.state("refused")
      case 410:
        return this.#listener.state("gone")
      case 409:
        this.#cursor = undefined
        this.#listener.reset()
        break
      case 503:
        this.#listener.state("full")
        break
      case 500:
        this.#listener.state("unreadable")
    }
    setTimeout(() => this.open(), pause)
  }
}
