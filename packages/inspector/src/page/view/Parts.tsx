/** Small parts that several views use. Spec: IP-10 in specs/http.md. */
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { dateText, visible } from "../fold/Words.ts"
import { ApiError } from "../net/Api.ts"

export interface Action {
  /** Why the last one was refused. */
  readonly error: string | undefined
  readonly isBusy: boolean
  /** Returns whether it was done. */
  readonly run: (work: () => Promise<unknown>) => Promise<boolean>
}

export const useAction = (): Action => {
  const [error, setError] = useState<string | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const run = async (work: () => Promise<unknown>): Promise<boolean> => {
    setBusy(true)
    try {
      await work()
      setError(undefined)
      return true
    } catch (cause) {
      setError(cause instanceof ApiError ? cause.message : String(cause))
      return false
    } finally {
      setBusy(false)
    }
  }
  return { error, isBusy, run }
}

/** A text from outside on one line or more, with its own direction. */
export const Text = ({ children }: { readonly children: string }) => <bdi>{visible(children)}</bdi>

export type Tone = "plain" | "good" | "bad" | "warn" | "live"

/** A short state in a coloured frame. */
export const Badge = ({ children, tone = "plain" }: { readonly children: ComponentChildren; readonly tone?: Tone }) => (
  <span class={`badge ${tone}`}>{children}</span>
)

/** A time of day, with the whole date as its title. */
export const Time = ({ at, children }: { readonly at: number; readonly children: string }) => (
  <time dateTime={new Date(at).toISOString()} title={dateText(at)}>
    {children}
  </time>
)

/** Does something again after each period while it is wanted. */
export const useEvery = (everyMs: number, isWanted: boolean, work: () => void): void =>
  useEffect(() => {
    if (!isWanted) return
    const timer = setInterval(work, everyMs)
    return () => clearInterval(timer)
  }, [everyMs, isWanted])

/** A table of numbers and texts; `#` at the end of a name aligns its column as numbers. */
export const Table = ({
  names,
  rows
}: {
  readonly names: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<ComponentChildren>>
}) => {
  const kindOf = (at: number) => (names[at]?.endsWith("#") === true ? "number" : undefined)
  return (
    <table>
      <thead>
        <tr>
          {names.map((name, at) => (
            <th key={at} class={kindOf(at)}>
              {name.replace("#", "")}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells, row) => (
          <tr key={row}>
            {cells.map((cell, at) => (
              <td key={at} class={kindOf(at)}>
                {cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Why something was refused, if it was. */
export const Problem = ({ children }: { readonly children: string | undefined }) =>
  children === undefined ? null : (
    <p class="problem" role="alert">
      {children}
    </p>
  )

/** A view without content yet, and why. */
export const Empty = ({ children }: { readonly children: ComponentChildren }) => <p class="empty">{children}</p>

/** The current time, again after each period. */
export const useNow = (everyMs: number): number => {
  const [now, set] = useState(Date.now())
  useEvery(everyMs, true, () => set(Date.now()))
  return now
}

/** A text that is long is closed at first. */
export const Fold = ({
  children,
  open = false,
  title
}: {
  readonly children: () => ComponentChildren
  readonly open?: boolean
  readonly title: ComponentChildren
}) => {
  const [isOpen, set] = useState(open)
  return (
    <div class="fold">
      <button type="button" class="fold-title" aria-expanded={isOpen} onClick={() => set(!isOpen)}>
        {title}
      </button>
      {isOpen ? <div class="fold-body">{children()}</div> : undefined}
    </div>
  )
}

export const Copy = ({ text, what }: { readonly text: string; readonly what: string }) => {
  const [state, set] = useState("Copy")
  return (
    <button
      type="button"
      class="copy"
      aria-label={`${state} ${what}`}
      onClick={() => {
        navigator.clipboard.writeText(text).then(
          () => set("Copied"),
          () => set("Not copied")
        )
      }}
    >
      {state}
    </button>
  )
}

export const Raw = ({ label, text }: { readonly label: string; readonly text: string }) => (
  <div class="copied">
    <Copy text={text} what={label} />
    <pre class="raw" tabIndex={0} role="region" aria-label={label} dir="auto">
      {visible(text)}
    </pre>
  </div>
)
