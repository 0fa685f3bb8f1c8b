// Addresses of things. Pure, so that what names them can be tested without a browser.

const encode = encodeURIComponent;
export const to = {
  home: () => "/",
  runs: (filter = "") => `/ui/runs${filter ? `?filter=${encode(filter)}` : ""}`,
  run: (id, tab = "") => `/ui/runs/${encode(id)}${tab ? `?tab=${tab}` : ""}`,
  workflows: (fresh = false) => `/ui/workflows${fresh ? "?new=1" : ""}`,
  workflow: (slug, tab = "") => `/ui/workflows/${encode(slug)}${tab ? `?tab=${tab}` : ""}`,
  approvals: () => "/ui/approvals",
  jobs: (filter = "") => `/ui/jobs${filter ? `?filter=${encode(filter)}` : ""}`,
  job: (name, tab = "") => `/ui/jobs/${encode(name)}${tab ? `?tab=${tab}` : ""}`,
  slots: (name = "") => `/ui/slots${name ? `/${encode(name)}` : ""}`,
  routing: (id = "", tab = "") => `/ui/routing${id ? `/${encode(id)}` : ""}${tab ? `?tab=${tab}` : ""}`,
  decision: (id) => `/ui/routing?decision=${encode(id)}`,
  settings: (tab = "") => `/ui/settings${tab ? `?tab=${tab}` : ""}`,
  api: (operation = "") => `/ui/api${operation ? `?operation=${encode(operation)}` : ""}`,
};
