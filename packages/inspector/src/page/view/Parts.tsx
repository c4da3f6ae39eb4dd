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

/** A view without content yet, and why. */
export const Empty = ({ children }: { readonly children: ComponentChildren }) => <p class="empty">{children}</p>

/** The current time, again after each period. */
export const useNow = (everyMs: number): number => {
  const [now, set] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
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
