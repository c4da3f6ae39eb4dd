/** The page: the list of sessions, and beside it the session that is shown. Spec: IP-6, IP-20 in specs/http.md. */
import { useEffect, useMemo, useState } from "preact/hooks"
import { Api, keepToken } from "../net/Api.ts"
import { OpenSession } from "../state/OpenSession.ts"
import { go, hrefOf, readRoute, route, tabs } from "../state/Route.ts"
import { choice, chooseTheme } from "../state/Theme.ts"
import { SessionList } from "../state/SessionList.ts"
import { NodesView, useNodes } from "./NodesView.tsx"
import { Empty, useEvery } from "./Parts.tsx"
import { SessionView, stateText } from "./SessionView.tsx"
import { Sidebar } from "./Sidebar.tsx"

const Entry = ({ isRefused, onToken }: { readonly isRefused: boolean; readonly onToken: (token: string) => void }) => {
  const [token, set] = useState("")
  return (
    <main class="token-form">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (token.trim() !== "") onToken(token.trim())
        }}
      >
        <h1>Daybook</h1>
        <p>
          {isRefused
            ? "The server did not accept the token of this tab."
            : "This page needs a token. At a terminal, daybook serve prints an address that has one."}{" "}
          <code>daybook token --scope admin</code> prints one on the server's machine.
        </p>
        <label>
          Token
          <input
            type="password"
            autocomplete="off"
            value={token}
            onInput={({ currentTarget }) => set(currentTarget.value)}
          />
        </label>
        <button type="submit" class="main">
          Continue
        </button>
      </form>
    </main>
  )
}

const useKeys = (list: SessionList) =>
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const isWriting = event.target instanceof HTMLElement && event.target.matches("input, textarea")
      if (event.key === "/" && !isWriting) {
        event.preventDefault()
        const [filter, search] = ["[data-filter]", "[data-search]"].map((each) =>
          document.querySelector<HTMLElement>(each)
        )
        ;(filter ?? search)?.focus()
        return
      }
      if (!event.altKey || event.ctrlKey || event.metaKey) return
      const { sessionID, tab } = readRoute()
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key]
      if (by === undefined) return
      event.preventDefault()
      if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        const items = list.items.value
        const at = items.findIndex(({ id }) => id === sessionID)
        const next = items[Math.max(0, Math.min(items.length - 1, at + by))]
        if (next !== undefined) go(hrefOf(next.id, tab))
      } else if (sessionID !== undefined) {
        const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length]
        if (next !== undefined) go(hrefOf(sessionID, next))
      }
    }
    addEventListener("keydown", pressed)
    return () => removeEventListener("keydown", pressed)
  }, [list])

/** Milliseconds between two looks for sessions that wait for a person. */
const needsEvery = 3_000

const Inspector = ({ api, onRefused }: { readonly api: Api; readonly onRefused: () => void }) => {
  const list = useMemo(() => new SessionList(api), [api])
  useEffect(() => {
    void list.open()
    return () => list.close()
  }, [list])
  const { nodes: isNodes, sessionID } = route.value
  const nodes = useNodes(api, isNodes)
  const session = useMemo(
    () => (sessionID === undefined ? undefined : new OpenSession(api, sessionID)),
    [api, sessionID]
  )
  useEffect(() => {
    void session?.open()
    return () => session?.close()
  }, [session])
  useEvery(needsEvery, list.active.value.size > 0, () => void list.lookForNeeds())
  const state = list.state.value
  useEffect(() => {
    if (state === "refused") onRefused()
  }, [state])
  useKeys(list)
  return (
    <div class="page" data-place={session === undefined && !isNodes ? "list" : "session"}>
      <a
        class="skip"
        href="#content"
        onClick={(event) => (event.preventDefault(), document.getElementById("content")?.focus())}
      >
        Skip to the session
      </a>
      <header class="top">
        <h1>
          <a href="#/">Daybook</a>
        </h1>
        <span role="status" class={`follow ${state}`}>
          {stateText[state]}
        </span>
        {nodes === undefined ? undefined : (
          <a href="#/nodes" aria-current={isNodes ? "page" : undefined}>
            Nodes
          </a>
        )}
        <label class="theme">
          Theme
          <select value={choice.value} onChange={({ currentTarget }) => chooseTheme(currentTarget.value)}>
            <option value="system">System</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </select>
        </label>
      </header>
      <Sidebar list={list} current={sessionID} />
      <main class="content" id="content" tabIndex={-1}>
        {isNodes && nodes !== undefined ? (
          <NodesView list={list} report={nodes} />
        ) : session === undefined ? (
          <Empty>Choose a session.</Empty>
        ) : (
          <SessionView
            key={session.id}
            session={session}
            route={route.value}
            isActive={list.active.value.has(session.id)}
            needs={list.needy.value.size}
          />
        )}
      </main>
    </div>
  )
}

export const App = ({ token: given }: { readonly token: string | undefined }) => {
  const [token, setToken] = useState(given)
  const [isRefused, setRefused] = useState(false)
  const api = useMemo(() => (token === undefined ? undefined : new Api(token)), [token])
  if (api === undefined || isRefused) {
    return (
      <Entry
        isRefused={isRefused}
        onToken={(next) => {
          keepToken(next)
          setRefused(false)
          setToken(next)
        }}
      />
    )
  }
  return <Inspector api={api} onRefused={() => setRefused(true)} />
}
