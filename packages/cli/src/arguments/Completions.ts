/** Renders completion scripts from the verbs. Pure; the build writes them to a file. Spec: CL-3. */
import type { Verb } from "./Verb.ts"

/** What may follow a line: the words after `daybook`, or "" for the verbs. */
type Continuation = { readonly after: string; readonly offered: ReadonlyArray<Offer> }

type Offer = { readonly word: string; readonly about: string; readonly takesValue: boolean }

const named = ({ name, summary }: Verb): Offer => ({ word: name, about: summary, takesValue: false })

const optionsOf = ({ flags }: Verb): ReadonlyArray<Offer> => [
  ...flags.map(({ about, name, value }) => ({ word: `--${name}`, about, takesValue: value !== undefined })),
  { word: "--help", about: "this text", takesValue: false }
]

const placesOf = (verbs: ReadonlyArray<Verb>): ReadonlyArray<Continuation> => [
  { after: "", offered: verbs.map(named) },
  ...verbs.flatMap((verb) => {
    const { actions = [], name } = verb
    if (actions.length === 0) return [{ after: name, offered: optionsOf(verb) }]
    return [
      { after: name, offered: actions.map(named) },
      ...actions.map((action) => ({ after: `${name} ${action.name}`, offered: optionsOf(action) }))
    ]
  })
]

/** In single quotes of a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Verbs with actions, as a pattern of a shell's `case`. */
const withActions = (verbs: ReadonlyArray<Verb>): string =>
  verbs.flatMap(({ actions, name }) => (actions === undefined ? [] : [name])).join("|")

const bash = (verbs: ReadonlyArray<Verb>): string => `_daybook() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" path="" words=""
  if [ "$COMP_CWORD" -gt 1 ]; then path="\${COMP_WORDS[1]}"; fi
  case "$path" in
    ${withActions(verbs)}) if [ "$COMP_CWORD" -gt 2 ]; then path="$path \${COMP_WORDS[2]}"; fi ;;
  esac
  case "$path" in
${placesOf(verbs)
  .map(({ after, offered }) => `    ${quoted(after)}) words=${quoted(offered.map(({ word }) => word).join(" "))} ;;`)
  .join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _daybook daybook
`

const zsh = (verbs: ReadonlyArray<Verb>): string => `#compdef daybook
_daybook() {
  local place=""
  local -a offered
  (( CURRENT > 2 )) && place="$words[2]"
  case "$place" in
    ${withActions(verbs)}) (( CURRENT > 3 )) && place="$place $words[3]" ;;
  esac
  case "$place" in
${placesOf(verbs)
  .map(({ after, offered }) => {
    const lines = offered.map(({ about, word }) => quoted(`${word}:${about}`))
    return `    ${quoted(after)}) offered=(${lines.join(" ")}) ;;`
  })
  .join("\n")}
  esac
  _describe daybook offered || _files
}
compdef _daybook daybook
`

const fish = (verbs: ReadonlyArray<Verb>): string =>
  placesOf(verbs)
    .flatMap(({ after, offered }) => {
      const [verb = "", action = ""] = after.split(" ")
      const seen = [verb, action].filter((word) => word !== "").map((word) => `__fish_seen_subcommand_from ${word}`)
      const condition = quoted(seen.length === 0 ? "__fish_use_subcommand" : seen.join("; and "))
      return offered.map(({ about, takesValue, word }) => {
        const what = word.startsWith("--") ? `-l ${word.slice(2)}${takesValue ? " -r" : ""}` : `-a ${word}`
        return `complete -c daybook -n ${condition} ${what} -d ${quoted(about)}\n`
      })
    })
    .join("")

export const completions = (verbs: ReadonlyArray<Verb>): Readonly<Record<string, string>> => ({
  bash: bash(verbs),
  zsh: zsh(verbs),
  fish: fish(verbs),
  sh: bash(verbs)
})
