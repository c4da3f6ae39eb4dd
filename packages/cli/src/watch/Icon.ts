/** The icon of the page: a prompt. */
export const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="7" fill="#1d2433"/>
<path d="M8 10l6 6-6 6M17 22h8" fill="none" stroke="#7fd1ae" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>
</svg>
`
