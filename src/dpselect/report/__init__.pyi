from .facts import search_facts as search_facts
from .page import render_page as render_page
