// Pinokio's entry: its menu. Its scripts are in pinokio/, as is the environment that they make.

const installing = { default: true, icon: "fa-solid fa-plug", text: "Install", href: "pinokio/install.json" };
const updating = { icon: "fa-solid fa-rotate", text: "Update", href: "pinokio/update.json" };
const starting = { default: true, icon: "fa-solid fa-power-off", text: "Start", href: "pinokio/start.json" };

module.exports = {
  version: "5.0",
  title: "Fish Voice Studio",
  description: "Type, choose a voice, hear speech as it is generated",
  icon: "assets/page/icon.svg",
  menu: async (_kernel, info) => {
    const busy = [installing, updating].find((entry) => info.running(entry.href));
    if (busy) return [{ ...busy, default: true }];
    if (!info.exists("pinokio/env")) return [installing];
    if (!info.running(starting.href)) return [starting, updating];
    const terminal = { ...starting, icon: "fa-solid fa-terminal", text: "Terminal" };
    const { url } = info.local(starting.href) ?? {};
    if (!url) return [terminal];
    return [{ default: true, icon: "fa-solid fa-rocket", text: "Open", href: url }, { ...terminal, default: false }];
  },
};
