/** The sessions, newest first, and whether they work; a person begins one here. Spec: IP-7 in specs/http.md. */
import { useState } from "preact/hooks"
import type { Session } from "@daybook/log/domain/Message"
import type { SearchHit, SearchPage } from "@daybook/log/search/Search"
import { agoText, costText, folderText, stateOf, visible } from "../fold/Words.ts"
import { go, hrefOf } from "../state/Route.ts"
import type { SessionList } from "../state/SessionList.ts"
import { Problem, Text, useAction, useNow } from "./Parts.tsx"

export const NewSession = ({ list }: { readonly list: SessionList }) => {
  const { error, isBusy, run } = useAction()
  const [isOpen, setOpen] = useState(false)
  const [written, setWritten] = useState<string | undefined>(undefined)
  // The folder of the session that was used last.
  const directory = written ?? list.items.value[0]?.location.directory ?? ""
  if (!isOpen) {
    return (
      <button type="button" class="more" onClick={() => setOpen(true)}>
        New session
      </button>
    )
  }
  const begin = async () => {
    const made: { session?: Session | undefined } = {}
    if (!(await run(async () => (made.session = await list.create(directory))))) return
    setOpen(false)
    if (made.session !== undefined) go(hrefOf(made.session.id, "transcript"))
  }
  return (
    <form
      class="group"
      aria-label="New session"
      onSubmit={(event) => {
        event.preventDefault()
        void begin()
      }}
    >
      <label>
        Folder
        <input value={directory} onInput={({ currentTarget }) => setWritten(currentTarget.value)} />
      </label>
      <div class="actions">
        <button type="submit" class="main" disabled={isBusy || directory.trim() === ""}>
          Begin
        </button>
        <button type="button" onClick={() => setOpen(false)}>
          Cancel
        </button>
      </div>
      <Problem>{error}</Problem>
    </form>
  )
}

/** A session's state as a word. `cut off`: it says that it runs, but no process runs it. */
export const titleOf = ({ id, title }: Session): string => (title === undefined || title.trim() === "" ? id : title)

const Row = ({
  isActive,
  isCurrent,
  isNeedy,
  now,
  session
}: {
  readonly session: Session
  readonly isActive: boolean
  readonly isCurrent: boolean
  readonly isNeedy: boolean
  readonly now: number
}) => {
  const state = stateOf(session, isActive, isNeedy)
  return (
    <li>
      <a class="session" href={hrefOf(session.id, "transcript")} aria-current={isCurrent ? "page" : undefined}>
        <span class="session-title">
          <Text>{titleOf(session)}</Text>
        </span>
        <span class="session-facts">
          <span class={`dot ${state.replace(" ", "-")}`} aria-hidden="true" />
          {state} · <Text>{folderText(session.location.directory)}</Text> · {agoText(session.updatedAt, now)}
          {session.cost === 0 ? undefined : ` · ${costText(session.cost)}`}
        </span>
      </a>
    </li>
  )
}

const Marked = ({ marks, snippet }: Pick<SearchHit, "marks" | "snippet">) => {
  const parts = marks.flatMap(([start, end], index) => [
    visible(snippet.slice(index === 0 ? 0 : marks[index - 1]?.[1], start)),
    <mark key={start}>{visible(snippet.slice(start, end))}</mark>
  ])
  return (
    <bdi>
      {parts}
      {visible(snippet.slice(marks.at(-1)?.[1] ?? 0))}
    </bdi>
  )
}

/** Texts of all sessions that match, the best first. */
const Found = ({ page: { items, truncated } }: { readonly page: SearchPage }) => (
  <section aria-label="Texts found">
    <h2 class="group">In texts</h2>
    <ul class="sessions">
      {items.map(({ directory, hits, sessionID, title }) => (
        <li key={sessionID} class="found">
          <span class="session-title">
            <Text>{title ?? folderText(directory)}</Text>
          </span>
          {hits.map(({ marks, role, seq, snippet }) => (
            <a key={seq} class="hit" href={hrefOf(sessionID, "transcript", seq)}>
              <span class="kind">{role}</span> <Marked marks={marks} snippet={snippet} />
            </a>
          ))}
        </li>
      ))}
    </ul>
    {items.length === 0 ? <p class="session-facts group">Nothing.</p> : undefined}
    {truncated ? <p class="session-facts group">Older matches are left out.</p> : undefined}
  </section>
)

export const Sidebar = ({ current, list }: { readonly list: SessionList; readonly current: string | undefined }) => {
  const now = useNow(5_000)
  const active = list.active.value
  const needy = list.needy.value
  const items = list.items.value.filter(({ id }) => !list.onlyNeedy.value || needy.has(id))
  return (
    <nav class="sidebar" aria-label="Sessions">
      <label class="search">
        <span class="hidden">Search sessions</span>
        <input
          type="search"
          placeholder="Search titles and prompts"
          data-search
          aria-keyshortcuts="/"
          value={list.search.value}
          onInput={({ currentTarget }) => list.find(currentTarget.value)}
        />
      </label>
      <NewSession list={list} />
      {needy.size === 0 && !list.onlyNeedy.value ? undefined : (
        <label class="group">
          <input
            type="checkbox"
            checked={list.onlyNeedy.value}
            onChange={({ currentTarget }) => (list.onlyNeedy.value = currentTarget.checked)}
          />{" "}
          Only sessions that need you ({needy.size})
        </label>
      )}
      <ul class="sessions">
        {items.map((session) => (
          <Row
            key={session.id}
            session={session}
            isActive={active.has(session.id)}
            isCurrent={session.id === current}
            isNeedy={needy.has(session.id)}
            now={now}
          />
        ))}
      </ul>
      {list.found.value === undefined ? undefined : <Found page={list.found.value} />}
      {items.length === 0 && list.loaded.value && list.found.value === undefined ? (
        <p class="empty">
          {list.error.value?.message ??
            (list.search.value === "" ? "No session yet. A prompt begins one." : "No session matches.")}
        </p>
      ) : undefined}
      {list.cursor.value === undefined ? undefined : (
        <button type="button" class="more" onClick={() => void list.more()}>
          Show older sessions
        </button>
      )}
    </nav>
  )
}
