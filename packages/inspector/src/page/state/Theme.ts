/** Light, dark, or what the system prefers; kept in the browser. Spec: IP-20 in specs/http.md. */
import { signal } from "@preact/signals"

const key = "daybook.theme"
const choices = ["system", "light", "dark"] as const
export type Choice = (typeof choices)[number]

const isChoice = (text: string | null): text is Choice => choices.some((each) => each === text)

export const choice = signal<Choice>("system")
export const theme = signal<"light" | "dark">("light")

const dark = matchMedia("(prefers-color-scheme: dark)")

const apply = (): void => {
  const isDark = choice.value === "dark" || (choice.value === "system" && dark.matches)
  theme.value = isDark ? "dark" : "light"
  document.documentElement.dataset["theme"] = theme.value
}

export const chooseTheme = (text: string | null): void => {
  choice.value = isChoice(text) ? text : "system"
  localStorage.setItem(key, choice.value)
  apply()
}

export const restoreTheme = (): void => {
  chooseTheme(localStorage.getItem(key))
  dark.addEventListener("change", apply)
}
